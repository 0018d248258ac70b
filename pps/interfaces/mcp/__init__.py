"""The Model Context Protocol: the verbs as tools, over HTTP and over stdio."""
