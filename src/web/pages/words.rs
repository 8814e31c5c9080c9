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
