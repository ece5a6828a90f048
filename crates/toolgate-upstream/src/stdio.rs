//! Messages on the pipes of a child, one a line.

use std::{io, sync::Arc};

use rmcp::{
    RoleClient,
    model::{RequestId, ServerJsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

use crate::{
    lines::{KEPT_OF_OVERSIZED, Line, LineReader},
    raw,
    typed::TypedRequests,
};

/// Each may be as large as the limit.
const QUEUED_MESSAGES: usize = 8;
/// What tells a message from other JSON.
const VERSION: &str = "\"jsonrpc\"";

/// A transport over a pair of pipes.
pub(crate) struct StdioTransport<W> {
    writer: Arc<tokio::sync::Mutex<Option<W>>>,
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
    typed: TypedRequests,
    closing: CancellationToken,
}

impl<W: AsyncWrite + Send + Unpin + 'static> StdioTransport<W> {
    /// Reads `stdout` in a task of its own until it ends. `on_stray` gets lines that are no
    /// messages.
    pub(crate) fn new<R: AsyncRead + Send + Unpin + 'static>(
        stdout: R,
        stdin: W,
        max_message_bytes: usize,
        on_stray: impl Fn(&str) + Send + 'static,
    ) -> Self {
        let (sender, messages) = mpsc::channel(QUEUED_MESSAGES);
        let typed = TypedRequests::default();
        let closing = CancellationToken::new();
        let reader = LineReader::new(stdout, max_message_bytes);
        let reading = read_messages(reader, sender, typed.clone(), on_stray);
        let closed = closing.clone();
        // A pipe that somebody holds open for ever must not hold this task.
        tokio::spawn(async move { closed.run_until_cancelled(reading).await });
        Self { writer: Arc::new(tokio::sync::Mutex::new(Some(stdin))), messages, typed, closing }
    }
}

impl<W> Drop for StdioTransport<W> {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleClient> for StdioTransport<W> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.typed.note(&message);
        let (writer, closing) = (Arc::clone(&self.writer), self.closing.clone());
        let writing = async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            let pipe = writer.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            pipe.write_all(&line).await?;
            pipe.flush().await
        };
        // A server that does not read keeps a write waiting, and the pipe with it.
        async move {
            closing
                .run_until_cancelled(writing)
                .await
                .unwrap_or(Err(io::ErrorKind::BrokenPipe.into()))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.closing.cancel();
        self.writer.lock().await.take();
        Ok(())
    }
}

async fn read_messages<R: AsyncRead + Unpin>(
    mut reader: LineReader<R>,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
    typed: TypedRequests,
    on_stray: impl Fn(&str),
) {
    let is_typed = |id: &RequestId| typed.take(id);
    loop {
        let batch = match reader.next().await {
            Line::Whole => match serde_json::from_slice::<Value>(reader.line()) {
                // Protocol version 2025-03-26 had batches.
                Ok(Value::Array(batch)) => batch,
                Ok(message) => vec![message],
                Err(error) => {
                    stray(reader.line(), &error, &on_stray);
                    if let Some(id) = id_of_unreadable(reader.line(), reader.line()) {
                        let answer = raw::unreadable(&format!("it is no JSON: {error}"), Some(id));
                        if messages.send(answer).await.is_err() {
                            return;
                        }
                    }
                    continue;
                }
            },
            Line::TooLong { bytes, head, tail } => {
                on_stray(&format!("(a message of {bytes} bytes, over the limit, was dropped)"));
                let Some(id) = id_of_unreadable(&head, &tail) else { continue };
                let why = too_large(Some(bytes), reader.limit());
                if messages.send(raw::unreadable(&why, Some(id))).await.is_err() {
                    return;
                }
                continue;
            }
            Line::End => return,
        };
        for value in batch {
            let Some(message) = raw::decode(value, is_typed) else {
                stray(reader.line(), &"it is no JSON-RPC message", &on_stray);
                continue;
            };
            if messages.send(message).await.is_err() {
                return;
            }
        }
    }
}

/// Tells of a line that is no message. More of it is passed on than is worth reading: secrets are
/// looked for in it before it is cut.
fn stray(line: &[u8], why: &dyn std::fmt::Display, on_stray: &impl Fn(&str)) {
    let text = String::from_utf8_lossy(&line[..line.len().min(KEPT_OF_OVERSIZED)]);
    if !text.trim().is_empty() {
        tracing::debug!(%why, "ignored a line on stdout");
        on_stray(text.trim_end());
    }
}

/// What is said of an answer over the limit.
pub(crate) fn too_large(bytes: Option<usize>, limit: usize) -> String {
    let size = bytes.map_or_else(String::new, |bytes| format!("it has {bytes} bytes, "));
    format!(
        "{size}more than the {limit} bytes allowed (`maxResultBytes` of the server raises this)"
    )
}

/// The id of an answer of which only both ends can be read: SDKs write it either before the result
/// or at the very end.
pub(crate) fn id_of_unreadable(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(&head[..head.len().min(KEPT_OF_OVERSIZED)]);
    let tail = &tail[tail.len().saturating_sub(KEPT_OF_OVERSIZED)..];
    let tail = String::from_utf8_lossy(tail);
    if !head.trim_start().starts_with('{') || !(head.contains(VERSION) || tail.contains(VERSION)) {
        return None;
    }
    let before_result = head.split("\"result\"").next().unwrap_or_default();
    if before_result.contains("\"method\"") {
        return None;
    }
    let at_end = tail.rsplit_once("\"id\"").map(|(_, rest)| rest);
    before_result.split_once("\"id\"").map(|(_, rest)| rest).or(at_end).and_then(|rest| {
        let value = rest.trim_start().strip_prefix(':')?;
        let end = value.find([',', '}'])?;
        serde_json::from_str(value[..end].trim()).ok()
    })
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use rmcp::model::ClientJsonRpcMessage;

    use super::*;

    async fn received(input: &str, limit: usize) -> (Vec<ServerJsonRpcMessage>, Vec<String>) {
        let strays = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&strays);
        let mut transport = StdioTransport::new(
            io::Cursor::new(input.as_bytes().to_vec()),
            tokio::io::sink(),
            limit,
            move |line| kept.lock().push(line.to_owned()),
        );
        let mut messages = Vec::new();
        while let Some(message) = transport.receive().await {
            messages.push(message);
        }
        let strays = strays.lock().clone();
        (messages, strays)
    }

    #[tokio::test]
    async fn stray_lines_are_told_and_change_nothing() {
        let input = "Server ready!\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}\r\n\n{\"x\":1}\n[1]\n\
                     [{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}},{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}]\n\
                     {\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}";
        let (messages, strays) = received(input, 1024).await;
        assert_eq!(messages.len(), 4, "{messages:?}");
        assert_eq!(strays, ["Server ready!", "{\"x\":1}", "[1]"]);
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_read_ends_its_call() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        let input = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"conte\n\
             {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{deep}}}\n\
             {{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":3,\n\
             {{\"id\":4,\n<html>\n"
        );
        let (messages, strays) = received(&input, 100_000).await;
        let ids: Vec<_> = messages
            .iter()
            .map(|message| match message {
                ServerJsonRpcMessage::Error(error)
                    if raw::is_unreadable(&raw::error_object(error.error.clone())) =>
                {
                    error.id.clone().unwrap()
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ids, [RequestId::Number(1), RequestId::Number(2)]);
        assert_eq!(strays.len(), 5);
    }

    #[tokio::test]
    async fn closing_does_not_wait_for_a_server_that_does_not_read() {
        let (_reader, writer) = tokio::io::simplex(16);
        let mut transport = StdioTransport::new(tokio::io::empty(), writer, 1024, |_| {});
        let notification = rmcp::model::InitializedNotification::default();
        let message = ClientJsonRpcMessage::notification(notification.into());
        let stuck = tokio::spawn(transport.send(message));
        tokio::task::yield_now().await;
        transport.close().await.unwrap();
        assert_eq!(stuck.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn an_oversized_answer_ends_its_call_and_no_other() {
        let filler = "x".repeat(100_000);
        let input = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"t\":\"{filler}\"}}}}\n\
             {{\"result\":{{\"t\":\"{filler}\"}},\"jsonrpc\":\"2.0\",\"id\":\"eight\"}}\n\
             {{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{{}}}}\n"
        );
        let (messages, _) = received(&input, 10_000).await;
        let told: Vec<String> = messages
            .iter()
            .map(|message| match message {
                ServerJsonRpcMessage::Error(error) => {
                    format!("{:?}: {}", error.id.as_ref().unwrap(), error.error.message)
                }
                ServerJsonRpcMessage::Response(response) => format!("{:?}: ok", response.id),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains('7') && told[0].contains("100042 bytes"), "{told:?}");
        assert!(told[1].contains("eight") && told[1].contains("maxResultBytes"), "{told:?}");
        assert!(told[2].ends_with("ok"));
    }
}
