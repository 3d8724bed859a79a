"""The table of routes: what the server answers, and what the OpenAPI document says of it."""

from jumok.serve import api, inside, libretranslate, page, results, training, use

ROUTES = (
    *api.ROUTES,
    *libretranslate.ROUTES,
    *page.ROUTES,
    *use.ROUTES,
    *inside.ROUTES,
    *training.ROUTES,
    *results.ROUTES,
)
