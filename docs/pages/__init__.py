"""The generated pages: each module has `page()`, the text that its page should have."""
