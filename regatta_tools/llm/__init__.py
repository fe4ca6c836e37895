"""One way to a model: a :class:`Request` in, a :class:`Reply` out, whatever the provider."""
