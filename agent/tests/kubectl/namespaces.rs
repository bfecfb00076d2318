//! docs/serve.md, played: three hosts in network namespaces on a bridge share one server.
