//! What a server reports while it works on a request.

use std::pin::Pin;

use tokio::sync::mpsc::Receiver;

/// Waits for an outcome, and passes on what is reported before it. Nothing comes after the outcome, although the
/// senders may live longer: a server may still report on a call of a script that was cancelled.
pub(crate) async fn with_reports<T, P, M>(
    mut outcome: Pin<&mut impl Future<Output = T>>,
    (mut progress, on_progress): (Option<Receiver<P>>, impl Fn(P)),
    (mut messages, on_message): (Option<Receiver<M>>, impl Fn(M)),
) -> T {
    let outcome = loop {
        let report = async { progress.as_mut()?.recv().await };
        let message = async { messages.as_mut()?.recv().await };
        tokio::select! {
            biased;
            Some(report) = report => on_progress(report),
            Some(message) = message => on_message(message),
            outcome = outcome.as_mut() => break outcome,
        }
    };
    while let Some(Ok(report)) = progress.as_mut().map(Receiver::try_recv) {
        on_progress(report);
    }
    while let Some(Ok(message)) = messages.as_mut().map(Receiver::try_recv) {
        on_message(message);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, pin::pin, time::Duration};

    use tokio::{sync::mpsc, time::timeout};

    use super::*;

    #[tokio::test]
    async fn the_outcome_comes_after_the_reports_and_does_not_wait_for_their_senders() {
        let ((first, progress), (second, messages)) = (mpsc::channel(4), mpsc::channel(4));
        let seen = RefCell::new(Vec::new());
        let see = |report: &'static str| seen.borrow_mut().push(report);
        let outcome = async {
            first.send("a half").await.unwrap();
            tokio::task::yield_now().await;
            second.send("a message").await.unwrap();
            first.send("all").await.unwrap();
            1
        };
        let outcome = pin!(outcome);
        let reported = with_reports(outcome, (Some(progress), see), (Some(messages), see));
        let outcome = timeout(Duration::from_mins(1), reported).await;
        assert_eq!(outcome, Ok(1));
        assert_eq!(*seen.borrow(), ["a half", "all", "a message"]);
    }
}
