//! Names that the manifest will have once their capability is there. They are refused by name, so
//! that nobody takes a setting without effect for one that works.

use super::reader::Kind;

/// The capability that `name` waits for, in a section of this kind.
pub(super) fn capability(kind: Kind, name: &str) -> Option<&'static str> {
    Some(match (kind, name) {
        (Kind::Top, "max_subagent_depth") => "sub-agents",
        (Kind::Top, "mcp") => "connectors",
        (Kind::Top, "retention") => "retention",
        (Kind::Top, "budget") => "budgets",
        (Kind::Top, "webhook") => "webhooks",
        (Kind::Top, "channels") => "channels",
        (Kind::Serve, "metrics_listen") => "metrics",
        (Kind::Llm, "format") => "workers",
        (Kind::LlmType, "worker") => "workers",
        (Kind::LlmType, "openrouter") => "OpenRouter",
        (Kind::Agent, "worker" | "signing_secret_env") => "workers",
        (Kind::Agent, "parallel_executes" | "notify_turn_finished") => "workers",
        (Kind::Agent, "sub_agents") => "sub-agents",
        (Kind::Agent, "mcp") => "connectors",
        (Kind::Agent, "budget") => "budgets",
        (Kind::Agent, "detached_run" | "share_state") => "AG-UI",
        (Kind::Retry, "tool") => "workers",
        (Kind::Retry, "sub_agent") => "sub-agents",
        (Kind::Retry, "connector") => "connectors",
        (Kind::Retry, "decision") => "workers",
        _ => return None,
    })
}
