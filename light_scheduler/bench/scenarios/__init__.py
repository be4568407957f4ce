"""The scenarios, a module each; `registry` names them."""
