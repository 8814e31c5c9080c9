//! The heartbeat: somebody outside hears of each scan, and notices when nothing is heard any more.
//!
//! Pings as Healthchecks understands them: `/start` when a scan begins, the URL itself when it completed, `/fail` when
//! it failed or did not run; the three of one scan carry the same `rid`.

use std::time::Duration;

use uuid::Uuid;

use super::{CallError, CallUrl, Caller};

/// A ping that is not heard is tried again so often, after so long, and given up when all took so long: scans wait for it.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(15);

/// What a ping says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    Started,
    Completed,
    Failed,
}

/// Pings `HEARTBEAT_URL`, if it is set.
#[derive(Debug, Clone, Default)]
pub struct Heartbeat(Option<(Caller, CallUrl)>);

impl Heartbeat {
    pub fn new(url: Option<CallUrl>) -> Self {
        Self(url.map(|url| (Caller::new(), url)))
    }

    /// Says `beat` about the scan `id`. Nothing depends on whether it is heard, which is only logged.
    pub async fn beat(&self, beat: Beat, id: Uuid) {
        let Some((caller, url)) = &self.0 else { return };
        let word = match beat {
            Beat::Started => "start",
            Beat::Completed => "",
            Beat::Failed => "fail",
        };
        let url = url.with_step(word, ("rid", &id.to_string()));
        let told = tokio::time::timeout(LIMIT, tell(caller, &url)).await;
        match told {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("HEARTBEAT_URL did not hear of the scan: {error}"),
            Err(_) => tracing::warn!("HEARTBEAT_URL did not hear of the scan within {} seconds", LIMIT.as_secs()),
        }
    }
}

async fn tell(caller: &Caller, url: &CallUrl) -> Result<(), CallError> {
    let mut told = caller.ping(url).await;
    for _ in 1..TRIES {
        if told.is_ok() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        told = caller.ping(url).await;
    }
    told
}
