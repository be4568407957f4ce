"""The scenarios, one module each; `registry` lists them."""
