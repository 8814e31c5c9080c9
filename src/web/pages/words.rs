//! What pages say after something was done. The address names the sentence, so that nobody else can put words here.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use url::form_urlencoded;

macro_rules! said {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $sentence:literal;)+) => {
        /// Something that was just done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Said { $($(#[$doc])* $name),+ }

        impl Said {
            /// How the address names it.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => $word),+ }
            }

            /// What the page says.
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence),+ }
            }

            fn of_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$name),)+ _ => None }
            }
        }
    };
}

said! {
    PasswordChanged = "password-changed", "Your password is changed. You are signed out everywhere else.";
    SignedOut = "signed-out", "You are signed out.";
    RoleChanged = "role-changed", "The role is changed.";
    UserDisabled = "user-disabled", "The user is disabled and signed out everywhere.";
    UserEnabled = "user-enabled", "The user may sign in again.";
    PermitCreated = "permit-created", "The permit is recorded.";
    PermitSaved = "permit-saved", "The changes are saved.";
    PermitRenewed = "permit-renewed", "The permit is renewed.";
    PermitPaused = "permit-paused", "Notices of this permit are paused.";
    PermitResumed = "permit-resumed", "Notices of this permit go on.";
    PermitArchived = "permit-archived", "The permit is archived. Nothing more is sent, and its number stays taken.";
    PermitRestored = "permit-restored", "The permit is back, and with it what is owed of it.";
    StepHeld = "step-held", "The notice of that step is held until somebody releases or cancels it.";
    StepSkipped = "step-skipped", "The notice of that step will not be sent.";
    Retried = "retried", "It goes again.";
    NoticeCancelled = "notice-cancelled", "The notice will not be sent.";
    NoticeHeld = "notice-held", "The notice is held until somebody releases or cancels it.";
    NoticeReleased = "notice-released", "The notice is released: it goes if it is still owed and in time.";
    Resolved = "resolved", "What you found out is recorded.";
    CopyAdded = "copy-added", "One more copy is recorded.";
    LetterPosted = "letter-posted", "The letter is recorded as posted.";
    ManyDone = "many-done", "It is done with all that were ticked.";
    HeldReleased = "held-released", "What was held is released: each goes if it is still owed and in time.";
    HeldCancelled = "held-cancelled", "What was held is cancelled.";
    ScanBegun = "scan-begun", "A scan has begun.";
    Suppressed = "suppressed", "The address is suppressed.";
    SuppressedAlready = "suppressed-already", "The address was suppressed already, and stays as it was.";
    SuppressionLifted = "suppression-lifted", "The address may be mailed again. What was not sent meanwhile can be retried.";
    TokenRevoked = "token-revoked", "The token is revoked.";
    TypeMade = "type-made", "The permit type is added, with the usual schedule.";
    TypeChanged = "type-changed", "The permit type is changed.";
    FileChecked = "file-checked", "The file was checked again.";
    FileDiscarded = "file-discarded", "The file is discarded.";
    MappingSaved = "mapping-saved", "How the file is read is saved, and it was checked again.";
    MappingRemoved = "mapping-removed", "The saved mapping is removed. What was imported with it stays.";
    Imported = "imported", "The file is imported.";
}

impl Said {
    /// Leads to `path`, where the sentence is shown.
    pub fn at(self, path: &str) -> Response {
        let joint = if path.contains('?') { '&' } else { '?' };
        Redirect::to(&format!("{path}{joint}done={}", self.word())).into_response()
    }
}

/// What was done before this page is shown, if it says so.
#[derive(Debug, Clone, Copy)]
pub struct Done(pub Option<Said>);

impl<S: Send + Sync> FromRequestParts<S> for Done {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let query = parts.uri.query().unwrap_or_default();
        let word = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "done");
        Ok(Self(word.and_then(|(_, word)| Said::of_word(&word))))
    }
}
