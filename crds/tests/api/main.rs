//! The API as a whole: the table of manifests, the types, the generated YAML.

mod cases;
mod hostile;
mod types;
mod yaml;
