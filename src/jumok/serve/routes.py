"""The table of routes: what the server answers, and what the OpenAPI document says of it."""

from jumok.serve import api, inside, page, results, training, use

ROUTES = (*api.ROUTES, *page.ROUTES, *use.ROUTES, *inside.ROUTES, *training.ROUTES, *results.ROUTES)
