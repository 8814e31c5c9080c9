//! What a script lets the server do instead of its usual answer.

use tokio::time::sleep;

use super::{
    super::{Act, At},
    Conversation, Over, Result,
};

impl Conversation {
    /// Does what the script says, or gives the usual answer. Whether the client may take it as a yes.
    pub(super) async fn answer(&mut self, at: At, usual: &str) -> Result<bool> {
        let act = self.act(at);
        self.perform(act, usual).await
    }

    pub(super) fn act(&self, at: At) -> Option<Act> {
        self.shared.act(at, self.number, self.index(), self.recipient.as_deref().unwrap_or_default())
    }

    pub(super) async fn perform(&mut self, act: Option<Act>, usual: &str) -> Result<bool> {
        match act {
            None => self.say(usual).await.map(|()| true),
            Some(Act::Cut | Act::AcceptThenCut) => {
                self.flush().await?;
                Err(Over)
            }
            Some(Act::Reset) => {
                self.flush().await?;
                let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
                nix::sys::socket::setsockopt(&self.fd, nix::sys::socket::sockopt::Linger, &linger).expect("linger");
                Err(Over)
            }
            Some(Act::Stall) => {
                self.stall().await?;
                self.say(usual).await.map(|()| true)
            }
            Some(Act::StallThenSay(text)) => {
                self.stall().await?;
                self.say_instead(text).await
            }
            Some(Act::Late(delay)) => {
                self.flush().await?;
                sleep(delay).await;
                self.say(usual).await.map(|()| true)
            }
            Some(Act::Say(text) | Act::AcceptThenSay(text)) => self.say_instead(text).await,
            Some(Act::SayThenCut(text)) => {
                self.say(text).await?;
                self.flush().await?;
                Err(Over)
            }
            Some(Act::Add(text)) => {
                self.say(&format!("{usual}{text}")).await?;
                Ok(true)
            }
            Some(Act::AnswerThenCut) => {
                self.say(usual).await?;
                self.flush().await?;
                Err(Over)
            }
        }
    }

    async fn say_instead(&mut self, text: &str) -> Result<bool> {
        self.say(text).await?;
        Ok(text.starts_with('2') || text.starts_with("354"))
    }

    /// Waits until released.
    async fn stall(&mut self) -> Result<()> {
        self.flush().await?;
        let mut released = self.shared.released.subscribe();
        let _ = released.wait_for(|released| *released).await;
        Ok(())
    }
}
