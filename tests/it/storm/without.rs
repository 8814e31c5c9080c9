//! What can be taken out of the product's database, to see the storm notice it: `STORM_WITHOUT=index,state`.
//!
//! | taken out | what the storm says |
//! |---|---|
//! | `lapse` | nobody takes over from the dead: attempts stay open, leases stay held |
//! | `state,index` | a copy whose attempt nobody knows the end of goes again, twice to the server |
//! | `state` alone | the same copies wait for ever, and none goes twice: the index refuses them |
//! | `lock,key` | two scans at once record one notice twice |
//! | `lock` alone | a scan wrote after another had the lock; none is recorded twice, for the key refuses it |
//! | `key` alone | nothing: the lock is enough |
//! | `index` alone | nothing: while the state of a delivery tells the truth the gate asks for no second attempt |
//!
//! What stands in no database is taken out by one line of the product:
//!
//! | where | instead | what the storm says |
//! |---|---|---|
//! | `judge` in `src/store/gate.rs` | `return GateAnswer::Open(0);` first | the gate opened for what had ended, was held or belonged to others |
//! | `look` in the same | `alive: true` | in one storm of three: an attempt was begun by a process that was dead for the others; mostly its leases are free by then, and the gate refuses it for that |
//! | `judge` in the same | without the versions | a mail that shows the name of before, or what its permit type said before |
//! | `send_chain` in `src/dispatch/sender.rs` | settles a message only after the gate of the next | more than one unknown message of one sender |
//! | `leave` in `src/dispatch/membership.rs` | `Ok(())` | a process that was stopped in order, and its row does not say so |
//! | `may_finish` in `src/dispatch/membership.rs` | `MayFinish::new(\|\| true)` | in three storms of four: a message was taken after its owner was lost |

use crate::support::postbox::Postbox;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// The unique index that allows one effective attempt.
    Index,
    /// The state that keeps what a dead process began from being sent again.
    State,
    /// The unique key of notices.
    Key,
    /// The lock of the scan.
    Lock,
    /// The lapse of process rows.
    Lapse,
}

impl Without {
    pub fn named(name: &str) -> Self {
        match name.trim() {
            "index" => Self::Index,
            "state" => Self::State,
            "key" => Self::Key,
            "lock" => Self::Lock,
            "lapse" => Self::Lapse,
            other => panic!("STORM_WITHOUT: {other} is none of index, state, key, lock, lapse"),
        }
    }

    pub async fn apply(self, post: &Postbox) {
        post.execute(match self {
            Self::Index => "DROP INDEX attempts_one_effective_idx",
            Self::State => {
                "CREATE FUNCTION storm_forgets() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN
                     NEW.state := 'pending';
                     RETURN NEW;
                 END $$;
                 CREATE TRIGGER storm_forgets BEFORE UPDATE ON deliveries FOR EACH ROW
                     WHEN (OLD.state = 'sending' AND NEW.state = 'ambiguous') EXECUTE FUNCTION storm_forgets()"
            }
            // `ON CONFLICT` wants the index to be there: each row gets a key of its own instead.
            Self::Key => {
                "CREATE SEQUENCE storm_keys;
                 ALTER TABLE notices DROP CONSTRAINT notices_key_equals_parts;
                 CREATE FUNCTION storm_blurs() RETURNS trigger LANGUAGE plpgsql AS $$
                 BEGIN
                     NEW.notice_key := NEW.notice_key || ':' || nextval('storm_keys');
                     RETURN NEW;
                 END $$;
                 CREATE TRIGGER storm_blurs BEFORE INSERT ON notices FOR EACH ROW EXECUTE FUNCTION storm_blurs()"
            }
            // Found before the real one by every session that begins from now on.
            Self::Lock => {
                "CREATE SCHEMA storm_lies;
                 CREATE FUNCTION storm_lies.pg_try_advisory_lock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true';
                 DO $$ BEGIN
                     EXECUTE format('ALTER DATABASE %I SET search_path = storm_lies, pg_catalog, public',
                                    current_database());
                 END $$"
            }
            Self::Lapse => {
                "CREATE OR REPLACE VIEW living_processes AS SELECT boot_id FROM processes WHERE ended_at IS NULL"
            }
        })
        .await;
    }
}
