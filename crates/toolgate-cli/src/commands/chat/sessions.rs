//! Chats that are stored and continued.

use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolgate::setup::SavedChat;
use toolgate_broker::new_id;
use toolgate_policy::definitions::shown;
use toolgate_store::{ChatLock, ChatStore, StoredChat, utc};

use crate::{
    cli::ChatMode,
    failure::{CommandResult, Failure},
    load, print,
    table::table,
};

/// How much of the first question is the title.
const TITLE: usize = 80;

/// The first line of a stored chat.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ChatHead {
    /// `provider/name`.
    pub(super) model: String,
    pub(super) url: Option<String>,
    pub(super) mode: Option<ChatMode>,
    /// The first question.
    pub(super) title: String,
    /// What was asked for when it began, since its messages need it.
    #[serde(flatten)]
    pub(super) options: ChatOptions,
    /// Why its mode is what it is.
    #[serde(default)]
    pub(super) reason: String,
    /// How many requests it has made, and the tokens that they have saved.
    #[serde(default)]
    pub(super) saved: (u64, u64),
}

/// What a chat was begun with.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ChatOptions {
    pub(super) programmatic: bool,
    pub(super) tool_changes: bool,
}

/// The file of a chat.
#[derive(Debug)]
pub(super) struct ChatFile {
    store: ChatStore,
    pub(super) id: String,
    pub(super) head: ChatHead,
    /// Nobody else continues it meanwhile.
    _lock: Option<ChatLock>,
}

/// A chat that goes on.
pub(super) struct StoredConversation {
    pub(super) file: ChatFile,
    pub(super) saved: SavedChat,
}

impl ChatFile {
    /// A new chat. Its file is written after the first turn.
    pub(super) fn new(store: ChatStore, head: ChatHead) -> Self {
        let id = new_id("chat").to_string();
        // A chat that cannot be locked cannot be stored either, which is said then.
        let lock = store.lock(&id).ok().flatten();
        Self { store, id, head, _lock: lock }
    }

    /// Another chat with the same model.
    pub(super) fn another(&self) -> Self {
        let head = ChatHead { title: String::new(), saved: (0, 0), ..self.head.clone() };
        Self::new(self.store.clone(), head)
    }

    /// The first question is the title.
    pub(super) fn asked(&mut self, question: &str) {
        if self.head.title.is_empty() {
            self.head.title = shown(question, TITLE);
        }
    }

    /// Replaces the whole file at once. Only its owner can read it.
    pub(super) fn save(&self, chat: &SavedChat) -> Result<(), Failure> {
        let written = serde_json::to_string(&self.head)
            .and_then(|head| serde_json::to_string(chat).map(|chat| (head, chat)));
        let (head, chat) = written
            .map_err(|error| Failure::new(format!("the chat cannot be written: {error}")))?;
        Ok(self.store.save(&self.id, &head, &chat)?)
    }
}

/// Reads a chat; without an id the latest one.
pub(super) fn load(id: Option<&str>) -> Result<StoredConversation, Failure> {
    let store = load::required_store()?.chats();
    let latest = || store.list().into_iter().next().map(|chat| chat.id);
    let id = match id {
        Some(id) => id.to_owned(),
        None => latest().ok_or_else(|| {
            Failure::usage("no chat is stored").hint("begin one with `toolgate chat`")
        })?,
    };
    let lock = store.lock(&id)?;
    let Some((head, content)) = store.load(&id)? else {
        let failure = Failure::usage(format!("there is no chat `{}`", shown(&id, TITLE)));
        return Err(failure.hint("`toolgate chat --list` lists the stored ones"));
    };
    if lock.is_none() {
        let failure = Failure::usage(format!("the chat `{id}` is open in another process"));
        return Err(failure.hint("end it there, or begin another one with `toolgate chat`"));
    }
    let damaged = |error: serde_json::Error| {
        Failure::new(format!("the chat `{id}` cannot be read: {error}"))
            .hint("`toolgate chat --list` lists the stored ones")
    };
    let head = serde_json::from_str(&head).map_err(damaged)?;
    let saved = serde_json::from_str(&content).map_err(damaged)?;
    Ok(StoredConversation { file: ChatFile { store: store.clone(), id, head, _lock: lock }, saved })
}

/// Lists the stored chats, the latest first.
pub(super) fn list(as_json: bool) -> CommandResult {
    let chats = load::required_store()?.chats().list();
    let head = |chat: &StoredChat| serde_json::from_str::<ChatHead>(&chat.head).unwrap_or_default();
    let rows: Vec<_> = chats
        .iter()
        .map(|chat| {
            let ChatHead { model, title, .. } = head(chat);
            json!({ "id": chat.id, "saved": utc(chat.saved), "model": model, "title": title })
        })
        .collect();
    print::list(as_json, &rows, "No chat is stored.", || {
        let cells = chats.iter().map(|chat| {
            let ChatHead { model, title, .. } = head(chat);
            vec![chat.id.clone(), utc(chat.saved), model, title]
        });
        table(&["id", "last turn", "model", "first question"], cells)
    })?;
    Ok(ExitCode::SUCCESS)
}
