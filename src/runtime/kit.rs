//! For tests: what the engine shares on a folder of its own, and calls.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use turnd_storage::{Options, Store};

use super::shared::Shared;
use crate::clock::Clock;
use crate::control::agents::{Catalogue, Llm};
use crate::effects::{self, Executors};
use crate::ids::{CallId, LlmId, MessageId};
use crate::protocol::blob::BlobHash;
use crate::protocol::content::{BlobUrl, Content, ContentPart};
use crate::protocol::message::{Message, Role};
use crate::session::{Bounds, ModelCall};

/// With the model `l1`, the built-in one.
pub(super) fn shared() -> (TempDir, Shared) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), Options::default()).unwrap();
    let executors = Executors::new(effects::Bounds::new(1 << 20));
    let bounds = Bounds { queued_turns_max: 1, event_bytes_max: 1 << 20 };
    let llms = [(LlmId::parse("l1").unwrap(), Arc::new(Llm::demo()))].into();
    let catalogue = Catalogue { llms, ..Catalogue::default() };
    let shared = Shared::new(store, Clock::start(), catalogue, executors, bounds);
    (folder, shared)
}

pub(super) fn image(hash: BlobHash, size: usize) -> ContentPart {
    let (mime, size) = ("image/png".to_owned(), size as u64);
    ContentPart::ImageUrl { image_url: BlobUrl { url: hash }, mime, size }
}

pub(super) fn says(role: Role, parts: Vec<ContentPart>) -> Arc<Message> {
    Arc::new(Message { content: Some(Content::Parts(parts)), ..Message::text(role, "") })
}

/// Of the model `l1`.
pub(super) fn call(messages: Vec<Arc<Message>>) -> ModelCall {
    ModelCall {
        id: CallId::parse("c1").unwrap(),
        attempt: 1,
        reply_id: MessageId::parse("m1").unwrap(),
        llm: LlmId::parse("l1").unwrap(),
        model: "some-model".to_owned(),
        system: None,
        stream: true,
        timeout: Some(Duration::from_secs(1)),
        messages,
        tools: Vec::new(),
    }
}
