//! Where calls that run at once meet: a window that is wide open, so that a race shows each time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;

use crate::tweak::lock;

/// How often a call lets the others go first while it waits for one.
const PATIENCE: usize = 200;

/// The calls that are under way, by what they are about.
pub(crate) struct Meeting<Key>(Mutex<HashMap<Key, Inside>>);

#[derive(Default)]
struct Inside {
    calls: u32,
    has_met: bool,
}

impl<Key> Default for Meeting<Key> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Key: Eq + Hash + Clone> Meeting<Key> {
    /// Waits a little for another call; tells whether there was one. Each call has to leave.
    pub(crate) async fn enter(&self, key: &Key) -> bool {
        {
            let mut all = lock(&self.0);
            let inside = all.entry(key.clone()).or_default();
            inside.calls += 1;
            inside.has_met |= inside.calls > 1;
        }
        for _ in 0..PATIENCE {
            if lock(&self.0).get(key).is_some_and(|inside| inside.has_met) {
                return true;
            }
            tokio::task::yield_now().await;
        }
        false
    }

    /// Ends what began with entering; tells whether nobody is left.
    pub(crate) fn leave(&self, key: &Key) -> bool {
        let mut all = lock(&self.0);
        let Some(inside) = all.get_mut(key) else {
            return true;
        };
        inside.calls -= 1;
        let is_last = inside.calls == 0;
        if is_last {
            all.remove(key);
        }
        is_last
    }
}
