//! How long a test waits between two looks at what it waits for: at first hardly at all, then ever longer. A look is a request to
//! an API server, or a process, on a machine that is busy with what is waited for.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(60);

pub(crate) struct Pause(Duration);

impl Pause {
    pub(crate) fn new() -> Self {
        Self(FIRST)
    }

    pub(crate) async fn pass(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 3 / 2).min(LONGEST);
    }
}
