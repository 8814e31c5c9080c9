use std::time::Duration;

use permit_notifier::shutdown::{Drained, Shutdown};
use tokio::time::{sleep, timeout};

const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(20);

fn code(shutdown: &Shutdown) -> String {
    format!("{:?}", shutdown.exit_code())
}

fn success() -> String {
    format!("{:?}", std::process::ExitCode::SUCCESS)
}

#[tokio::test]
async fn tasks_that_heed_the_soft_stop_end_calmly_with_code_zero() {
    let shutdown = Shutdown::new();
    let soft = shutdown.soft().clone();
    shutdown.spawn("loop", async move {
        soft.cancelled().await;
        Ok::<_, String>(())
    });
    shutdown.stop();
    assert_eq!(shutdown.drain(LONG).await, Drained::Calmly);
    assert!(!shutdown.hard().is_cancelled());
    assert_eq!(code(&shutdown), success());
}

#[tokio::test]
async fn a_task_that_panics_stops_the_service_and_the_exit_code_says_so() {
    let shutdown = Shutdown::new();
    shutdown.spawn("broken", async {
        assert_eq!(1 + 1, 3, "made to panic");
        Ok::<_, String>(())
    });
    timeout(LONG, shutdown.soft().cancelled()).await.unwrap();
    assert_eq!(shutdown.drain(LONG).await, Drained::Calmly);
    assert_ne!(code(&shutdown), success());
}

#[tokio::test]
async fn a_task_that_fails_stops_the_service_and_one_that_ends_well_does_not() {
    let shutdown = Shutdown::new();
    shutdown.spawn_errand("short", async { Ok::<_, String>(()) }).await.unwrap();
    assert!(!shutdown.soft().is_cancelled());

    shutdown.spawn_errand("unlucky", async { Err("the port is taken") }).await.unwrap();
    assert!(shutdown.soft().is_cancelled() && shutdown.has_failed());
    assert_ne!(code(&shutdown), success());
}

#[tokio::test]
async fn a_loop_that_ends_although_nobody_asked_stops_the_service() {
    let shutdown = Shutdown::new();
    shutdown.spawn("tired loop", async { Ok::<_, String>(()) }).await.unwrap();
    assert!(shutdown.soft().is_cancelled() && shutdown.has_failed());
    assert_ne!(code(&shutdown), success());
}

#[tokio::test]
async fn after_the_limit_the_hard_stop_drops_what_can_be_dropped() {
    let shutdown = Shutdown::new();
    let hard = shutdown.hard().clone();
    shutdown.spawn("sender", async move {
        hard.cancelled().await;
        Ok::<_, String>(())
    });
    assert_eq!(shutdown.drain(SHORT).await, Drained::Late);
    assert!(shutdown.soft().is_cancelled());
    assert_eq!(code(&shutdown), success());
}

#[tokio::test]
async fn a_task_that_heeds_nothing_is_cut_off_in_bounded_time() {
    let shutdown = Shutdown::new();
    shutdown.spawn("deaf", async {
        std::future::pending::<()>().await;
        Ok::<_, String>(())
    });
    let drained = timeout(LONG, shutdown.drain(SHORT)).await.unwrap();
    assert_eq!(drained, Drained::CutOff(1));
    assert_ne!(code(&shutdown), success());
}

#[tokio::test]
async fn a_second_signal_ends_a_drain_at_once() {
    let shutdown = Shutdown::new();
    shutdown.spawn("deaf", async {
        std::future::pending::<()>().await;
        Ok::<_, String>(())
    });
    let second = shutdown.clone();
    let (drained, ()) = tokio::join!(shutdown.drain(LONG), async move {
        sleep(SHORT).await;
        second.end_at_once();
    });
    assert_eq!(drained, Drained::CutOff(1));
    assert!(shutdown.hard().is_cancelled());
    assert_ne!(code(&shutdown), success());
}
