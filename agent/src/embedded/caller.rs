//! Who asks. Whoever takes a connection puts a [`Caller`] into the request's extensions; a request without one comes
//! from this process, which may do everything.
//!
//! Must never be read from anything that a client can write, such as a header.

use hyper::http::Extensions;

/// On whose behalf a request is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// This process, or whoever may open its socket.
    #[default]
    Everything,
    /// One host, by its Node's name: bound to its own objects.
    Host(String),
}

impl Caller {
    /// Who made a request.
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_default()
    }
}
