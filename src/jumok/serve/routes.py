"""The table of routes: what the server answers, and what the OpenAPI document says of it."""

from jumok.serve import api, inside, page, use

ROUTES = (*api.ROUTES, *page.ROUTES, *use.ROUTES, *inside.ROUTES)
