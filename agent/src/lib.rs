//! Everything that touches the world: API, kernel, disk, terminal.
