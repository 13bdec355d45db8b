//! `[agent.<id>]`: who answers in a session, and how.

use std::collections::BTreeMap;
use std::sync::Arc;

use toml::de::DeValue;

use super::nearest::nearest;
use super::problem::Fault;
use super::reader::{Kind, Section, decimal_digits, wrong_type};
use super::text::name_text;
use super::tool;
use crate::control::agents::Agent;
use crate::ids::{AgentId, LlmId};
use crate::protocol::agent::{AgentConfig, RetryPolicy, Seconds};

/// Longest attempt and longest wait, in seconds: a week.
const SECS_MAX: u64 = 7 * 24 * 60 * 60;
const ATTEMPTS_MAX: u64 = 100;

/// Every agent that is declared. `llms` are the names of all blocks, those with faults too: a
/// reference to one of these is not a second problem.
pub(super) fn read(section: Section<'_, '_>, llms: &[&str]) -> BTreeMap<AgentId, Agent> {
    let mut agents = BTreeMap::new();
    for (name, block) in section.sections(Kind::Agent) {
        let id = AgentId::parse(name).map_err(|error| block.own_fault(Fault::Id(error)));
        if let (Some(agent), Ok(id)) = (read_agent(block, llms), id) {
            agents.insert(id, agent);
        }
    }
    agents
}

fn read_agent(mut block: Section<'_, '_>, llms: &[&str]) -> Option<Agent> {
    let llm = block.parsed("llm", |text| llm_reference(text, llms));
    let model = block.parsed("model", name_text);
    let system = block.string("system").map(str::to_owned);
    let description = block.string("description").map(str::to_owned);
    let stream = block.bool("stream");
    let retry = read_retry(block.section("retry", Kind::Retry));
    let tools = tool::read(&mut block);
    if block.has("llm") {
        if !block.has("model") {
            block.own_fault(Fault::Missing("`model`, which an agent with an `llm` needs"));
        }
    } else if !block.has("worker") {
        block.own_fault(Fault::Missing("`llm`, the model block that the agent runs on"));
    }
    block.finish();
    let config = AgentConfig {
        llm: llm?,
        model: model?,
        system,
        stream: stream.unwrap_or(true),
        retry,
        tools,
    };
    Some(Agent { config: Arc::new(config), description })
}

fn llm_reference(text: &str, llms: &[&str]) -> Result<LlmId, Fault> {
    if !llms.contains(&text) {
        let nearest = nearest(text, llms.iter().copied());
        let known = llms.iter().map(|&name| name.to_owned()).collect();
        return Err(Fault::UnknownName { what: "model block", nearest, known });
    }
    Ok(LlmId::parse(text)?)
}

/// The policy for model calls: the engine's, then the agent's for all calls, then for these (S37).
fn read_retry(mut section: Section<'_, '_>) -> RetryPolicy {
    let mut policy = RetryPolicy::MODEL_CALL;
    for key in ["default", "llm"] {
        read_policy(section.section(key, Kind::Policy), &mut policy);
    }
    section.finish();
    policy
}

fn read_policy(mut section: Section<'_, '_>, policy: &mut RetryPolicy) {
    read_timeout(&mut section, &mut policy.timeout_secs);
    section.number("max_retries", 1..=ATTEMPTS_MAX, &mut policy.max_retries);
    read_wait(&mut section, "backoff_base_secs", &mut policy.backoff_base_secs);
    read_wait(&mut section, "backoff_max_secs", &mut policy.backoff_max_secs);
    section.finish();
}

/// TOML has no null: the text `never` stands for an attempt without a deadline.
fn read_timeout(section: &mut Section<'_, '_>, timeout: &mut Option<Seconds>) {
    let key = "timeout_secs";
    match section.value(key) {
        None => {}
        Some(DeValue::String(text)) if text == "never" => *timeout = None,
        Some(DeValue::String(_)) => section.fault(key, Fault::SecondsOrNever),
        Some(value) => match seconds(value) {
            Ok(secs) if secs > Seconds::default() => *timeout = Some(secs),
            Ok(_) => section.fault(key, Fault::Seconds { min: "0.001", max: SECS_MAX }),
            Err(_) => section.fault(key, Fault::SecondsOrNever),
        },
    }
}

fn read_wait(section: &mut Section<'_, '_>, key: &'static str, wait: &mut Seconds) {
    match section.value(key).map(seconds) {
        None => {}
        Some(Ok(secs)) => *wait = secs,
        Some(Err(fault)) => section.fault(key, fault),
    }
}

fn seconds(value: &DeValue<'_>) -> Result<Seconds, Fault> {
    let digits = decimal_digits(value).ok_or_else(|| wrong_type("a number of seconds", value))?;
    digits
        .parse()
        .ok()
        .and_then(|secs| std::time::Duration::try_from_secs_f64(secs).ok())
        .filter(|secs| secs.as_secs_f64() <= Seconds::whole(SECS_MAX).duration().as_secs_f64())
        .and_then(|secs| u64::try_from(secs.as_millis()).ok())
        .map(Seconds::from_millis)
        .ok_or(Fault::Seconds { min: "0", max: SECS_MAX })
}
