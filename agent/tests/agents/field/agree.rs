//! The end of every test of a field.

use std::time::Instant;

use super::{Field, PATIENCE};
use crate::check;
use crate::pause::Pause;
use crate::world::World;

impl Field {
    /// The shared end of every test: ledger, enactments, journals and kernels agree, and nothing is held by nobody.
    pub(crate) async fn agree(&self) {
        self.agree_but(&[]).await;
    }

    /// The same, but for what is named: how the complaints about it begin. It must differ, or the test has the wrong name for it.
    pub(crate) async fn agree_but(&self, but: &[&str]) {
        let (begun, mut pause) = (Instant::now(), Pause::new());
        loop {
            let places = self.known.lock().expect("whole").clone();
            let world = World::see(&self.client, &places).await.expect("an answer");
            check::no_address_twice(&world);
            let wrong = check::disagreements_but(&world, but);
            if wrong.is_empty() {
                return self.settled.settle();
            }
            assert!(begun.elapsed() < PATIENCE, "never in agreement: {wrong:#?}\n{world}");
            pause.pass().await;
        }
    }
}
