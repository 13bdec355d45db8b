//! One request to a provider and what comes back, within the bounds on time and size.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{RequestBuilder, Response};
use tokio::time::timeout;

use super::llm::stream::{Decoder, Event, STREAM_BYTES_MAX};
use super::{Bounds, classify};
use crate::session::{CallFailure, ModelCall};

/// What is read of an error's body: enough for its type.
const ERROR_BODY_BYTES_MAX: usize = 64 * 1024;
/// The status alone says enough when the body of an error does not come soon.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(5);

/// A successful answer.
pub enum Answer {
    Events(Box<Events>),
    Whole(Vec<u8>),
}

pub struct Events {
    response: Response,
    idle: Option<Duration>,
    decoder: Option<Decoder>,
    ready: VecDeque<Event>,
}

/// Sends the `request` of a call. Whether events come back is the provider's choice, not the call's:
/// some servers answer in one piece whatever they are asked.
pub async fn send(
    request: RequestBuilder,
    call: &ModelCall,
    bounds: &Bounds,
) -> Result<Answer, CallFailure> {
    let response = match at_most(bounds.head_max(call), request.send()).await {
        Some(sent) => sent.map_err(|error| classify::transport(&error))?,
        None => return Err(classify::timed_out("start to answer")),
    };
    let idle = bounds.idle_max(call);
    if !response.status().is_success() {
        return Err(refusal(response, bounds).await);
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    if kind.contains("event-stream") || (call.stream && !kind.contains("json")) {
        let events =
            Events { response, idle, decoder: Some(Decoder::default()), ready: VecDeque::new() };
        return Ok(Answer::Events(Box::new(events)));
    }
    whole(response, STREAM_BYTES_MAX, idle).await.map(Answer::Whole)
}

impl Events {
    /// The next event; `None` once the provider closed the stream in good order.
    pub async fn next(&mut self) -> Result<Option<Event>, CallFailure> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let Some(decoder) = &mut self.decoder else {
                return Ok(None);
            };
            match chunk(&mut self.response, self.idle).await? {
                Some(bytes) => decoder
                    .push(&bytes, &mut self.ready)
                    .map_err(|overflow| classify::flooded(&overflow.to_string()))?,
                None => self.ready.extend(self.decoder.take().and_then(Decoder::finish)),
            }
        }
    }
}

async fn refusal(response: Response, bounds: &Bounds) -> CallFailure {
    let status = response.status();
    let headers = response.headers().clone();
    let wait = Some(ERROR_BODY_WAIT.min(bounds.idle_max));
    let body = at_most(wait, whole(response, ERROR_BODY_BYTES_MAX, None)).await;
    let body = body.and_then(Result::ok).unwrap_or_default();
    classify::status(status, &headers, &body)
}

async fn whole(
    mut response: Response,
    bytes_max: usize,
    idle: Option<Duration>,
) -> Result<Vec<u8>, CallFailure> {
    let mut body = Vec::new();
    while let Some(bytes) = chunk(&mut response, idle).await? {
        if body.len() + bytes.len() > bytes_max {
            return Err(classify::flooded(&format!("more than {bytes_max} bytes")));
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

async fn chunk(
    response: &mut Response,
    idle: Option<Duration>,
) -> Result<Option<bytes::Bytes>, CallFailure> {
    match at_most(idle, response.chunk()).await {
        Some(read) => read.map_err(|error| classify::transport(&error)),
        None => Err(classify::timed_out("go on with its answer")),
    }
}

/// The outcome of `work`, or `None` after `wait`; without a `wait` it may take forever.
async fn at_most<T>(wait: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
    match wait {
        Some(wait) => timeout(wait, work).await.ok(),
        None => Some(work.await),
    }
}
