"""The table of routes: what the server answers, and what the OpenAPI document says of it."""

from jumok.serve import api, comparing, huggingface, inside, libretranslate, openai, page, results, training, use

ROUTES = (
    *api.ROUTES,
    *libretranslate.ROUTES,
    *huggingface.ROUTES,
    *openai.ROUTES,
    *page.ROUTES,
    *use.ROUTES,
    *inside.ROUTES,
    *training.ROUTES,
    *results.ROUTES,
    *comparing.ROUTES,
)
