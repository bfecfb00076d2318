//! Work beside other work, for as long as somebody wants it.

use std::future::Future;

use tokio::task::JoinHandle;

/// A task that ends when this is dropped.
pub struct Task(JoinHandle<()>);

impl Task {
    pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
