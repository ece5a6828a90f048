//! What has no answer yet.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use toolgate_bindings::check::LookupResult;
use toolgate_engines::CallId;

use crate::{run::call_table::CallIndex, tools::CallResponse};

/// The answer to a question that was asked; to be awaited only if there is one.
pub(super) async fn maybe(describing: &mut Option<Describing>) -> Option<Vec<LookupResult>> {
    match describing {
        Some(Describing(future)) => Some(future.await),
        None => None,
    }
}

/// A question that the host is looking into.
pub(super) struct Describing(pub(super) BoxFuture<'static, Vec<LookupResult>>);

impl std::fmt::Debug for Describing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Describing")
    }
}

/// A call that has no answer yet.
pub(in crate::run) struct InFlight {
    pub(super) id: CallId,
    pub(super) entry: CallIndex,
    pub(super) name: String,
    pub(super) future: BoxFuture<'static, CallResponse>,
}

impl std::fmt::Debug for InFlight {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("InFlight").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A call that has one.
#[derive(Debug)]
pub(in crate::run) struct Ended {
    pub(super) id: CallId,
    pub(super) entry: CallIndex,
    pub(super) name: String,
    pub(super) answer: CallResponse,
}

impl Future for InFlight {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended> {
        let this = &mut *self;
        this.future.as_mut().poll(context).map(|answer| Ended {
            id: this.id,
            entry: this.entry,
            name: std::mem::take(&mut this.name),
            answer,
        })
    }
}
