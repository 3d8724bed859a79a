// A small view layer: a view is a tree of plain objects, and `mount` makes the document equal to it, changing only what
// differs. Elements keep their identity (focus, caret, scrolling) as long as their key, or their tag in order, stays.
//
//   h("button", { class: "quiet", onClick: act, "aria-pressed": true }, "Text")
//   h(Component, { key: run.name, run })           a component is a function (props) => view; it has no state of its own
//   h("canvas", { key, setup: (el, props) => ({ update(props) {}, destroy() {} }), data })   draws its inside itself

const SPACES = { svg: "http://www.w3.org/2000/svg", math: "http://www.w3.org/1998/Math/MathML" };
const PROPERTIES = new Set(["value", "checked", "indeterminate", "selected", "scrollTop"]);
const OWN = new Set(["key", "children", "setup", "ref", "data"]);

/** A view of an element, or what a component returns for these properties. */
export function h(tag, props, ...children) {
  const flat = flatten(children);
  if (typeof tag === "function") {
    const view = tag({ ...props, children: flat });
    return props?.key !== undefined && view?.tag ? { ...view, key: props.key } : view;
  }
  return { tag, props: props ?? {}, children: flat, key: props?.key, element: null, drawn: null };
}

function flatten(children) {
  const shown = (child) => child !== null && child !== undefined && typeof child !== "boolean" && child !== "";
  return children
    .flat(Infinity)
    .filter(shown)
    .map((child) => (typeof child === "object" ? child : { tag: null, text: String(child), element: null }));
}

/** Show `view()` inside `root`; returns a function that shows it anew, once for many calls in a row. */
export function mount(root, view) {
  let shown = [];
  let asked = false;
  const draw = () => {
    asked = false;
    const wanted = flatten([view()]);
    place(root, shown, wanted, root.namespaceURI);
    shown = wanted;
  };
  draw();
  return () => {
    if (asked) return;
    asked = true;
    queueMicrotask(draw);
  };
}

/** Make the children of an element equal to `wanted`. */
function place(parent, shown, wanted, space) {
  const known = new Map();
  const unnamed = [];
  for (const old of shown) {
    if (old.key !== undefined && old.tag) known.set(old.key, old);
    else unnamed.push(old);
  }
  const kept = wanted.map((view) => match(view, known, unnamed));
  for (const old of shown) if (!kept.includes(old)) remove(parent, old);
  let next = null; // from the last to the first: each stands before the one that follows it
  for (let i = wanted.length - 1; i >= 0; i--) {
    const view = wanted[i];
    if (kept[i]) update(kept[i], view, space);
    else create(view, space);
    if (view.element.parentNode !== parent || view.element.nextSibling !== next)
      parent.insertBefore(view.element, next);
    next = view.element;
  }
}

/** What is shown already and can become this view; it is taken out of what is left. */
function match(view, known, unnamed) {
  if (view.key !== undefined && view.tag) {
    const old = known.get(view.key);
    if (old?.tag !== view.tag) return null;
    known.delete(view.key);
    return old;
  }
  const at = unnamed.findIndex((old) => old.tag === view.tag);
  return at < 0 ? null : unnamed.splice(0, at + 1).at(-1);
}

function create(view, space) {
  if (view.tag === null) {
    view.element = document.createTextNode(view.text);
    return;
  }
  const own = SPACES[view.tag] ?? space;
  view.element = document.createElementNS(own, view.tag);
  if (view.props.setup) {
    setAll(view.element, {}, view.props);
    view.drawn = view.props.setup(view.element, view.props) ?? {};
  } else {
    place(view.element, [], view.children, own);
    setAll(view.element, {}, view.props); // after the children: a select has its value when it has its options
  }
  view.props.ref?.(view.element);
}

function update(old, view, space) {
  view.element = old.element;
  if (view.tag === null) {
    if (old.text !== view.text) view.element.data = view.text;
    return;
  }
  if (old.props.setup) {
    setAll(view.element, old.props, view.props);
    view.drawn = old.drawn;
    view.drawn.update?.(view.props);
  } else {
    place(view.element, old.children, view.children, SPACES[view.tag] ?? space);
    setAll(view.element, old.props, view.props);
  }
}

function remove(parent, view) {
  destroy(view);
  if (view.element.parentNode === parent) parent.removeChild(view.element);
}

function destroy(view) {
  view.drawn?.destroy?.();
  view.children?.forEach(destroy);
}

function setAll(element, old, props) {
  for (const name in old) if (!(name in props) && !OWN.has(name)) set(element, name, old[name], undefined);
  for (const name in props) if (!OWN.has(name)) set(element, name, old[name], props[name]);
}

function set(element, name, old, value) {
  if (name.startsWith("on")) {
    const event = name.slice(2).toLowerCase();
    if (old === value) return;
    if (old) element.removeEventListener(event, old);
    if (value) element.addEventListener(event, value);
  } else if (name === "style") {
    for (const key in old ?? {}) if (!(key in (value ?? {}))) element.style.removeProperty(key);
    for (const key in value ?? {}) if (old?.[key] !== value[key]) element.style.setProperty(key, value[key]);
  } else if (PROPERTIES.has(name)) {
    if (element[name] !== value) element[name] = value ?? "";
  } else if (old !== value) {
    if (value === undefined || value === null || (value === false && !name.startsWith("aria-")))
      element.removeAttribute(name);
    else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  }
}
