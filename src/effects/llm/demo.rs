//! The built-in `demo` model (S49a): deterministic, without key or network.
//!
//! It looks at the last message. Usage counts words as tokens; the cost is 0.

use std::fmt::Write as _;
use std::time::Duration;

use rust_decimal::Decimal;

use super::history::text_of;
use super::media;
use super::reply::{Reply, Summary};
use crate::effects::classify;
use crate::protocol::content::Content;
use crate::protocol::error::ErrorCode;
use crate::protocol::json::Json;
use crate::protocol::llm::{LlmResponse, Usage};
use crate::protocol::message::{Message, Role};
use crate::session::{CallFailure, ModelCall};

/// Longest wait before one word of `/slow`. The deadline of the attempt bounds the sum.
const SLOW_MS_MAX: u64 = 10_000;
/// Most words of `/long`: about half a MiB, below the default bound of an event.
const LONG_WORDS_MAX: u32 = 50_000;

const HELP: &str = "\
The demo model repeats what you write. Messages that start with a slash do more:
/call <tool> <json>  calls that tool; several lines make several calls
/slow <ms> <text>    waits that long before each word, at most 10000 ms
/think <text>        reasons with that text before it answers
/fail <code>         fails with provider_error, rate_limited, refused,
                     budget_exceeded or deadline_exceeded
/long <n>            answers n words, at most 50000
/help                shows this list";

/// What the last message asks for.
#[derive(Debug, PartialEq, Eq)]
enum Script {
    Say(String),
    Slow { before_each_word: Duration, text: String },
    Think { reasoning: String, text: String },
    Call(Vec<Invocation>),
    Fail(ErrorCode),
}

#[derive(Debug, PartialEq, Eq)]
struct Invocation {
    tool: String,
    arguments: String,
}

pub async fn answer(call: &ModelCall, mut reply: Reply<'_>) -> Result<LlmResponse, CallFailure> {
    let mut output_words = 0;
    match script(call) {
        Script::Say(text) => {
            output_words += say(&mut reply, &text, Duration::ZERO).await?;
        }
        Script::Slow { before_each_word, text } => {
            output_words += say(&mut reply, &text, before_each_word).await?;
        }
        Script::Think { reasoning, text } => {
            for piece in pieces(&reasoning) {
                reply.reasoning(piece)?;
                tokio::task::yield_now().await;
            }
            let reasoning_words = words(&reasoning);
            output_words += reasoning_words + say(&mut reply, &text, Duration::ZERO).await?;
            return reply.complete(summary(call, output_words, Some(reasoning_words)));
        }
        Script::Call(invocations) => {
            for Invocation { tool, arguments } in invocations {
                let index = reply.open_call(&tool)?;
                for piece in pieces(&arguments) {
                    reply.arguments(index, piece)?;
                    tokio::task::yield_now().await;
                }
                output_words += words(&tool) + words(&arguments);
            }
        }
        Script::Fail(code) => return Err(classify::asked_for(code)),
    }
    reply.complete(summary(call, output_words, None))
}

/// Streams `text` word by word and returns how many words it has.
async fn say(reply: &mut Reply<'_>, text: &str, wait: Duration) -> Result<u64, CallFailure> {
    for piece in pieces(text) {
        if wait.is_zero() {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(wait).await;
        }
        reply.text(piece)?;
    }
    Ok(words(text))
}

fn summary(call: &ModelCall, output_tokens: u64, reasoning_tokens: Option<u64>) -> Summary {
    let said: u64 = call.messages.iter().map(|message| words(&text_of(message))).sum();
    let input_tokens = said + call.system.as_deref().map_or(0, words);
    Summary {
        model: None,
        finish_reason: "stop".to_owned(),
        usage: Some(Usage {
            input_tokens,
            output_tokens,
            cached_input_tokens: None,
            reasoning_tokens,
            total_tokens: input_tokens + output_tokens,
        }),
        cost: Some(Decimal::ZERO),
    }
}

fn script(call: &ModelCall) -> Script {
    let Some(last) = call.messages.last() else {
        return Script::Say("There is nothing to answer yet.".to_owned());
    };
    let text = text_of(last);
    match last.role {
        Role::User | Role::System if text.starts_with('/') => {
            command(&text).unwrap_or_else(Script::Say)
        }
        Role::User | Role::System => Script::Say(echo(&mentioned(last))),
        Role::Assistant => Script::Say("There is nothing new to answer.".to_owned()),
        Role::Tool => {
            Script::Say(format!("{} answered: {}", tool_name(call, last), mentioned(last)))
        }
    }
}

/// Reads a slash command; the error is the answer that explains what is wrong with it.
fn command(text: &str) -> Result<Script, String> {
    let (name, rest) = split_word(text);
    match name {
        "/help" => Ok(Script::Say(HELP.to_owned())),
        "/call" => invocations(text).map(Script::Call),
        "/slow" => slow(rest),
        "/think" if rest.trim().is_empty() => Err("Write /think <text>.".to_owned()),
        "/think" => Ok(Script::Think { reasoning: rest.to_owned(), text: echo(rest) }),
        "/fail" => fail(rest.trim()),
        "/long" => long(rest.trim()),
        _ => Err(format!("{name} is not a command of the demo model.\n\n{HELP}")),
    }
}

fn slow(rest: &str) -> Result<Script, String> {
    let usage = || {
        format!("Write /slow <ms> <text>, with a whole number of at most {SLOW_MS_MAX} for <ms>.")
    };
    let (ms, text) = split_word(rest);
    match ms.parse::<u64>() {
        Ok(ms) if ms <= SLOW_MS_MAX && !text.trim().is_empty() => {
            Ok(Script::Slow { before_each_word: Duration::from_millis(ms), text: echo(text) })
        }
        Ok(_) | Err(_) => Err(usage()),
    }
}

fn fail(code: &str) -> Result<Script, String> {
    let found = ErrorCode::ALL.into_iter().find(|known| known.as_str() == code);
    found.map(Script::Fail).ok_or_else(|| {
        let known: Vec<&str> = ErrorCode::ALL.into_iter().map(ErrorCode::as_str).collect();
        format!("Write /fail <code>, with one of these codes: {}.", known.join(", "))
    })
}

fn long(count: &str) -> Result<Script, String> {
    let count = count.parse::<u32>().ok().filter(|count| (1..=LONG_WORDS_MAX).contains(count));
    let Some(count) = count else {
        return Err(format!("Write /long <n>, with a number from 1 to {LONG_WORDS_MAX} for <n>."));
    };
    let mut text = "word1".to_owned();
    for number in 2..=count {
        // Writing to a String cannot fail.
        let _ = write!(text, " word{number}");
    }
    Ok(Script::Say(text))
}

/// Each line that starts with `/call` is a call; other lines belong to the JSON of the one above.
fn invocations(text: &str) -> Result<Vec<Invocation>, String> {
    let mut found: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        let (first, rest) = split_word(line.trim());
        match found.last_mut() {
            _ if first == "/call" => {
                let (tool, json) = split_word(rest.trim_start());
                found.push((tool, json.to_owned()));
            }
            Some((_, json)) => {
                json.push('\n');
                json.push_str(line);
            }
            None => {}
        }
    }
    found.into_iter().map(|(tool, json)| invocation(tool, json.trim())).collect()
}

fn invocation(tool: &str, json: &str) -> Result<Invocation, String> {
    if tool.is_empty() {
        return Err("Write /call <tool> <json>, for instance /call clock {}.".to_owned());
    }
    let arguments = if json.is_empty() { "{}" } else { json };
    if Json::parse(arguments).is_none() {
        return Err(format!(
            "The arguments for {tool} are not JSON. Write /call <tool> <json>, for instance \
             /call {tool} {{}}."
        ));
    }
    Ok(Invocation { tool: tool.to_owned(), arguments: arguments.to_owned() })
}

fn echo(text: &str) -> String {
    format!("You said: {text}")
}

/// The text of a message, and a few words for each part that is none.
fn mentioned(message: &Message) -> String {
    let Some(Content::Parts(parts)) = &message.content else {
        return text_of(message);
    };
    let others = parts.iter().filter(|part| part.as_text().is_none());
    let mut words: Vec<String> = others.map(|part| format!("[{}]", media::words(part))).collect();
    let text = text_of(message);
    if !text.is_empty() {
        words.insert(0, text);
    }
    words.join(" ")
}

/// The tool that a result answers for.
fn tool_name<'c>(call: &'c ModelCall, result: &'c Message) -> &'c str {
    let calls = call.messages.iter().rev().flat_map(|message| &message.tool_calls);
    calls
        .filter(|made| Some(&made.id) == result.tool_call_id.as_ref())
        .map(|made| made.function.name.as_str())
        .next()
        .or(result.name.as_deref())
        .unwrap_or("tool")
}

fn words(text: &str) -> u64 {
    text.split_whitespace().map(|_| 1).sum()
}

/// The first word, and what follows the one white space after it.
fn split_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// Words with the white space before them; they add up to `text`, byte for byte.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        let (_, tail) = rest.split_at(word);
        let end = word + tail.find(char::is_whitespace).unwrap_or(tail.len());
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests;
