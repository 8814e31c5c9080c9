//! What is said outside about one scan, which never waits for it.

use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::ScanRules;
use crate::outgoing::heartbeat::Beat;

/// What is said outside about one scan.
#[derive(Default)]
pub(super) struct Telling<'r> {
    /// That it began, until that is heard or given up.
    pub start: Option<BoxFuture<'r, ()>>,
    /// How it ended, if that is to be said.
    pub end: Option<(Beat, Uuid)>,
}

impl Telling<'_> {
    /// Says how the scan ended; after its start, for whoever measures the time between the two.
    pub async fn end(self, rules: &ScanRules) {
        let Some((beat, id)) = self.end else { return };
        if let Some(start) = self.start {
            start.await;
        }
        rules.heartbeat.beat(beat, id).await;
    }
}

/// Does `work`, and `aside` for as long as that lasts; what is left of it then stays there.
pub(super) async fn alongside<T>(aside: &mut Option<BoxFuture<'_, ()>>, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    if let Some(going) = aside {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = going => {}
        }
        *aside = None;
    }
    work.await
}
