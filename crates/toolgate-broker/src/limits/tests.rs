//! Limits by caller, day, minute and open calls.

use toolgate_policy::{CallerCondition, RuleOrigin, RuleTarget};
use toolgate_store::Store;

use super::*;

fn limit(shared: bool) -> CallLimit {
    let origin = RuleOrigin::Configured { path: "limits[0]".into(), position: None };
    let target = RuleTarget::read(Some("github"), None).unwrap();
    CallLimit::new(target, CallerCondition::default(), shared, origin)
}

fn caller(name: &str) -> Arc<str> {
    name.into()
}

async fn enter(
    limiter: &Arc<CallLimiter>,
    limits: &[Arc<CallLimit>],
    name: &str,
) -> Result<LimitSlot, CallLimitReached> {
    limiter.enter(limits, &caller(name), WhenBusy::Refuse).await
}

#[tokio::test]
async fn every_caller_has_a_count_unless_it_is_shared() {
    let limiter = CallLimiter::new(None);
    let own = [Arc::new(CallLimit { per_minute: Some(1), ..limit(false) })];
    enter(&limiter, &own, "ada").await.unwrap();
    let refused = enter(&limiter, &own, "ada").await.unwrap_err();
    assert_eq!(limiter.check(&own, &caller("ada")).unwrap_err().kind, refused.kind);
    enter(&limiter, &own, "bob").await.unwrap();
    let told = refused.to_string();
    assert!(told.starts_with("`limits[0]` allows `ada` 1 call a minute of all of `github`, and"));
    assert_eq!(refused.to_value()["limit"], "perMinute");
    assert!(refused.until.is_some_and(|until| until > refused.now), "{refused:?}");
    let shared = [Arc::new(CallLimit { per_minute: Some(1), ..limit(true) })];
    enter(&limiter, &shared, "ada").await.unwrap();
    assert!(enter(&limiter, &shared, "bob").await.is_err());
}

#[tokio::test]
async fn open_calls_are_counted_until_they_end() {
    let limiter = CallLimiter::new(None);
    let limits = [Arc::new(CallLimit { in_flight: Some(1), ..limit(false) })];
    let open = enter(&limiter, &limits, "ada").await.unwrap();
    let refused = enter(&limiter, &limits, "ada").await.unwrap_err();
    assert_eq!((refused.kind, refused.until), (LimitKind::InFlight, None));
    let waiting = {
        let (limiter, limits) = (Arc::clone(&limiter), limits.clone());
        tokio::spawn(async move {
            limiter.enter(&limits, &caller("ada"), WhenBusy::Wait).await.map(drop)
        })
    };
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished(), "a script waits");
    drop(open);
    waiting.await.unwrap().unwrap();
    enter(&limiter, &limits, "ada").await.unwrap();
}

#[tokio::test]
async fn the_count_of_a_day_survives_a_restart_and_is_taken_back() {
    let folder = std::env::temp_dir().join(format!("toolgate-limits-{}", std::process::id()));
    let start = || CallLimiter::new(Some(Store::new(&folder).quotas()));
    let limits = [Arc::new(CallLimit { per_day: Some(2), ..limit(false) })];
    enter(&start(), &limits, "ada").await.unwrap().take_back().await;
    enter(&start(), &limits, "ada").await.unwrap();
    enter(&start(), &limits, "ada").await.unwrap();
    let limiter = start();
    let refused = enter(&limiter, &limits, "ada").await.unwrap_err();
    assert_eq!(refused.kind, LimitKind::PerDay);
    assert!(refused.to_string().contains("2 calls a day"), "{refused}");
    assert!(limiter.check(&limits, &caller("ada")).is_err(), "known without the file by now");
    enter(&limiter, &limits, "bob").await.unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn callers_beyond_the_room_in_memory_share_a_count() {
    let limiter = CallLimiter::new(None);
    let limits = [Arc::new(CallLimit { per_minute: Some(3), ..limit(false) })];
    for number in 0..MAX_COUNTS {
        enter(&limiter, &limits, &format!("caller {number}")).await.unwrap();
    }
    for number in 0..3 {
        enter(&limiter, &limits, &format!("late {number}")).await.unwrap();
    }
    assert!(enter(&limiter, &limits, "another").await.is_err());
    assert!(limiter.counts.lock().len() <= MAX_COUNTS + 1);
}

#[tokio::test]
async fn what_is_never_allowed_names_no_time() {
    let limiter = CallLimiter::new(None);
    let limits = [Arc::new(CallLimit { per_day: Some(0), ..limit(false) })];
    let refused = enter(&limiter, &limits, "ada").await.unwrap_err();
    assert!(refused.to_string().ends_with("until a person changes the limit"), "{refused}");
    assert_eq!(refused.to_value()["until"], Value::Null);
}

#[tokio::test]
async fn a_clock_that_is_set_back_renews_no_day() {
    let limit = CallLimit { per_day: Some(1), ..limit(false) };
    let mut count = CallCount::default();
    let at = |day: i64| Times { since_start: Duration::ZERO, now: 0, day };
    for (day, is_full) in [(5, false), (5, true), (6, false), (5, true), (6, true), (7, false)] {
        assert_eq!(full(&limit, &mut count, at(day), |most| most).is_some(), is_full, "day {day}");
        count.day.1 += u32::from(!is_full);
    }
}
