//! A mail server that says anything at any step: what a message ends as follows from the bytes alone, however they
//! are cut, and "accepted" needs a 250 after the dot.

use std::time::Duration;

use permit_notifier::{
    domain::attempt::{Outcome, Phase},
    mail::{Ended, Mailer as _, MayFinish, Session},
};
use proptest::{prelude::*, test_runner::TestCaseResult};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufStream},
    net::{TcpListener, TcpStream},
    task::yield_now,
    time::timeout,
};

use super::{
    Bytes, check,
    replies::{First, first, piece},
};
use crate::smtp::{limits, mailer, message};

/// Where the server begins to say something else than usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum At {
    Banner,
    Ehlo,
    Auth,
    Mail,
    Rcpt,
    Data,
    Dot,
    /// The MAIL that travels behind a dot.
    Next,
}

impl At {
    const ALL: [Self; 8] =
        [Self::Banner, Self::Ehlo, Self::Auth, Self::Mail, Self::Rcpt, Self::Data, Self::Dot, Self::Next];

    /// The replies by which it goes on.
    fn goes_on(self, code: u16) -> bool {
        match self {
            Self::Banner => code == 220,
            Self::Auth => code == 235,
            Self::Rcpt => matches!(code, 250 | 251),
            Self::Data => code == 354,
            Self::Ehlo | Self::Mail | Self::Dot | Self::Next => code == 250,
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Case {
    at: At,
    pipelining: bool,
    pieces: Vec<Bytes>,
    /// How often all of it comes.
    times: usize,
}

impl Case {
    fn whole(&self) -> Vec<u8> {
        self.pieces.iter().flat_map(|piece| piece.0.clone()).collect::<Vec<_>>().repeat(self.times)
    }

    /// The reply in it, and whether anything follows.
    fn says(&self) -> (First, bool) {
        let whole = self.whole();
        let first = first(&whole);
        let more = matches!(&first, First::Reply { length, .. } if *length < whole.len());
        (first, more)
    }

    /// Whether the conversation goes on as usual.
    fn is_usual(&self) -> bool {
        matches!(self.says(), (First::Reply { code, .. }, false) if self.at.goes_on(code))
    }

    /// What is written at once. What follows a reply comes with its last byte: later it could not be told from the
    /// reply to the next command, by anybody.
    fn packets(&self, cut: bool) -> Vec<Vec<u8>> {
        let whole = self.whole();
        if !cut || self.times > 1 {
            return vec![whole];
        }
        let end = match first(&whole) {
            First::Reply { length, .. } => length,
            _ => whole.len(),
        };
        let (mut packets, mut at) = (Vec::new(), 0);
        for piece in &self.pieces {
            if at + piece.0.len() >= end {
                break;
            }
            at += piece.0.len();
            packets.push(piece.0.clone());
        }
        packets.push(whole[at..].to_vec());
        packets
    }
}

fn case() -> impl Strategy<Value = Case> {
    let usual = prop::sample::select(vec![
        "220 mail.example\r\n",
        "250-mail.example\r\n250 8BITMIME\r\n",
        "235 2.7.0 ok\r\n",
        "250 2.1.0 ok\r\n",
        "251 elsewhere\r\n",
        "354 go on\r\n",
        "250 2.0.0 queued\r\n",
        "250\n",
    ]);
    let usual = (usual, any::<prop::sample::Index>()).prop_map(|(text, cut)| {
        let (left, right) = text.split_at(cut.index(text.len()));
        vec![Bytes(left.into()), Bytes(right.into())]
    });
    let odd = prop::collection::vec(piece().prop_map(Bytes), 0..6);
    let pieces = prop_oneof![
        4 => usual.clone(),
        4 => odd.clone(),
        2 => (usual, odd).prop_map(|(usual, odd)| [usual, odd].concat()),
    ];
    let times = prop_oneof![15 => Just(1_usize), 1 => 100_usize..1000];
    (prop::sample::select(At::ALL.to_vec()), any::<bool>(), pieces, times).prop_map(
        |(at, pipelining, pieces, times)| Case {
            at,
            // Only there something travels behind a dot; and what an EHLO offers is part of what it says.
            pipelining: at == At::Next || pipelining && at != At::Ehlo,
            pieces,
            times,
        },
    )
}

/// One connection of a server that is well but for the case. Gives how many dots it saw.
async fn serve(listener: TcpListener, case: &Case, cut: bool) -> std::io::Result<usize> {
    let (tcp, _) = listener.accept().await?;
    tcp.set_nodelay(true)?;
    let mut stream = BufStream::new(tcp);
    let offers = if case.pipelining { "250-mail.example\r\n250-PIPELINING\r\n" } else { "250-mail.example\r\n" };
    let (mut dots, mut mails) = (0, 0);
    let mut step = Some((At::Banner, "220 mail.example\r\n".to_owned()));
    let mut line = Vec::new();
    loop {
        if let Some((at, usual)) = step.take() {
            if at == case.at {
                // The client reads between two packets; and it hears with the last one that the server leaves.
                for (number, packet) in case.packets(cut).iter().enumerate() {
                    for _ in 0..if number > 0 { 3 } else { 0 } {
                        yield_now().await;
                    }
                    // The client may have heard enough.
                    if stream.write_all(packet).await.is_err() || stream.flush().await.is_err() {
                        return Ok(dots);
                    }
                }
                if !case.is_usual() {
                    let tcp: &mut TcpStream = stream.get_mut();
                    tcp.shutdown().await.ok();
                    return drain(stream, dots).await;
                }
            } else {
                stream.write_all(usual.as_bytes()).await?;
                stream.flush().await?;
            }
        }
        line.clear();
        if stream.read_until(b'\n', &mut line).await? == 0 {
            return Ok(dots);
        }
        let usual = match &line[..line.len().min(4)] {
            b"EHLO" => (At::Ehlo, format!("{offers}250 AUTH PLAIN\r\n")),
            b"AUTH" => (At::Auth, "235 ok\r\n".to_owned()),
            b"MAIL" => {
                mails += 1;
                (if mails == 1 { At::Mail } else { At::Next }, "250 ok\r\n".to_owned())
            }
            b"RCPT" => (At::Rcpt, "250 ok\r\n".to_owned()),
            b"DATA" => (At::Data, "354 go on\r\n".to_owned()),
            b".\r\n" => {
                dots += 1;
                (At::Dot, "250 queued\r\n".to_owned())
            }
            _ => continue,
        };
        step = Some(usual);
    }
}

/// Reads what the client still says, so that nothing of what was said to it is lost; counts the dots.
async fn drain(mut stream: BufStream<TcpStream>, dots: usize) -> std::io::Result<usize> {
    let mut rest = Vec::new();
    // A client that has heard enough may leave with a reset.
    let _ = stream.read_to_end(&mut rest).await;
    Ok(dots + rest.windows(5).filter(|five| five == b"\r\n.\r\n").count())
}

/// How the message ended, what became of the next, and the dots that the server saw.
type Run = (Ended, Option<Result<(), Ended>>, usize);

async fn run(case: &Case, cut: bool) -> Run {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let user = if case.at == At::Auth { "permits:secret@" } else { "" };
    let mut session = mailer(&format!("smtp://{user}127.0.0.1:{port}?tls=none"), limits()).session();
    let client = async {
        let said = send(&mut *session, case.at == At::Next).await;
        drop(session);
        said
    };
    let both = async { tokio::join!(serve(listener, case, cut), client) };
    let (server, (ended, next)) = timeout(Duration::from_secs(15), both).await.expect("both come to an end");
    (ended, next, server.unwrap())
}

async fn send(session: &mut dyn Session, with_next: bool) -> (Ended, Option<Result<(), Ended>>) {
    let (one, two) = (message("ann@x.example"), message("bob@x.example"));
    if let Err(ended) = session.offer(&one.envelope).await {
        return (ended, None);
    }
    let next = with_next.then_some(&two.envelope);
    let sent = session.transmit(&one.envelope, &one, next, &MayFinish::always()).await;
    (sent.ended, sent.next)
}

/// What the bytes allow the message to end as, where one command follows another.
fn allowed(case: &Case) -> Outcome {
    use Outcome::{Accepted, Ambiguous, Deferred, NotSent, Rejected};
    let (reply, more) = case.says();
    let First::Reply { code, lines, .. } = reply else {
        return if case.at == At::Dot { Ambiguous } else { NotSent };
    };
    let words = String::from_utf8_lossy(&lines[0]).into_owned();
    let enhanced = words.split_ascii_whitespace().next().unwrap_or_default();
    match (case.at, code) {
        (At::Dot, 250) => Accepted,
        (At::Dot, 400..500) => Deferred,
        (At::Dot, 500..) => Rejected,
        (At::Dot, _) => Ambiguous,
        (at, code) if at.goes_on(code) => {
            if more {
                NotSent
            } else {
                Accepted
            }
        }
        (At::Rcpt | At::Data, 400..) if matches!(enhanced, "5.1.7" | "4.1.7" | "5.1.8" | "4.1.8") => NotSent,
        (At::Rcpt | At::Data, 421) => NotSent,
        (At::Rcpt | At::Data, 400..500) => Deferred,
        (At::Rcpt | At::Data, 500..) => Rejected,
        _ => NotSent,
    }
}

fn judge(case: &Case, (ended, next, dots): &Run) -> TestCaseResult {
    let is_accepted = ended.outcome == Outcome::Accepted;
    let usual = case.is_usual();
    if is_accepted {
        prop_assert!(*dots > 0, "accepted without a dot");
    }
    if case.at == At::Next {
        prop_assert!(is_accepted, "the message that was taken");
        prop_assert_eq!(matches!(next, Some(Ok(()))), usual);
        if let Some(Err(ended)) = next {
            prop_assert!(!matches!(ended.outcome, Outcome::Accepted | Outcome::Ambiguous), "{:?}", ended);
        }
        return Ok(());
    }
    if case.at != At::Dot && !usual {
        prop_assert!(*dots == 0 && ended.outcome != Outcome::Ambiguous, "a dot after what should have ended it");
    }
    if !case.pipelining || case.at == At::Dot || usual {
        prop_assert_eq!(ended.outcome, allowed(case));
    } else {
        prop_assert!(!is_accepted);
    }
    if matches!(case.at, At::Banner | At::Ehlo | At::Auth | At::Mail) && !is_accepted && !case.pipelining {
        prop_assert!(ended.transport_fault || case.says().1, "nothing was said about the message");
    }
    Ok(())
}

/// What a run comes to, without words.
fn gist((ended, next, dots): &Run) -> (Outcome, Phase, bool, Option<bool>, usize) {
    (ended.outcome, ended.phase, ended.transport_fault, next.as_ref().map(Result::is_ok), *dots)
}

#[test]
fn a_message_ends_as_the_servers_bytes_say_however_they_are_cut() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    check("conversations", 400, case(), |case| {
        let whole = runtime.block_on(run(case, false));
        judge(case, &whole)?;
        let cut = runtime.block_on(run(case, true));
        if case.says().1 {
            // How much of what nobody asked for is there when it is looked for, is a matter of time.
            prop_assert_eq!(gist(&cut), gist(&whole), "cut differently");
        } else {
            prop_assert_eq!(&cut, &whole, "cut differently");
        }
        Ok(())
    });
}
