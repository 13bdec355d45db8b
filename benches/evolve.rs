//! What the core costs by itself: replay of a long log, with and without its decoding, and one turn.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use turnd::ids::{AgentId, CallId, LlmId, OwnerId, SessionId, SessionKey, local_tenant};
use turnd::protocol::agent::{AgentConfig, RetryPolicy};
use turnd::protocol::event::Event;
use turnd::protocol::input::{Identity, Input};
use turnd::protocol::llm::LlmResponse;
use turnd::protocol::message::{Message, Role};
use turnd::session::{Caller, Command, Effect, ModelOutcome, Session, Submission};
use turnd::time::Timestamp;

const TURNS: usize = 10_000;

fn key() -> SessionKey {
    SessionKey { tenant: local_tenant(), session: SessionId::parse("s1").expect("an id") }
}

fn agent() -> AgentConfig {
    AgentConfig {
        llm: LlmId::parse("demo").expect("an id"),
        model: "demo-1".to_owned(),
        system: None,
        stream: true,
        retry: RetryPolicy::MODEL_CALL,
    }
}

fn submit() -> Command {
    Command::Submit(Box::new(Submission {
        caller: Caller::Frontend,
        identity: Identity { id: OwnerId::parse("zoe").expect("an owner"), metadata: None },
        agent_id: AgentId::parse("helper").expect("an id"),
        turn_id: None,
        queue: false,
        input: Input::Message {
            message: Message::text(Role::User, "What is the weather in Oslo?"),
            stream: None,
        },
        queued_turns_max: 100,
    }))
}

fn answer(id: CallId, attempt: u32) -> Command {
    let response = LlmResponse {
        model: "demo-1".to_owned(),
        content: Some("It rains, as it does on most days of the year.".to_owned()),
        ..LlmResponse::default()
    };
    let outcome = ModelOutcome { result: Ok(response), streamed: true };
    Command::SettleModelCall { id, attempt, outcome }
}

/// One turn: a submit and the answer to its model call.
fn turn(session: &mut Session, agent: &AgentConfig, now: Timestamp) -> Vec<Event> {
    let step = session.decide(submit(), Some(agent), now).expect("accepted");
    let mut events = step.events;
    for effect in step.effects {
        if let Effect::CallModel { id, attempt } = effect {
            let step = session.decide(answer(id, attempt), Some(agent), now);
            events.extend(step.expect("pending").events);
        }
    }
    events
}

/// A session of so many turns, a second apart, with its log.
fn conversation(turns: usize) -> (Session, Vec<Event>) {
    let mut session = Session::new(key());
    let mut log = Vec::new();
    let mut now = Timestamp::from_millis(1_790_000_000_000);
    for _ in 0..turns {
        log.extend(turn(&mut session, &agent(), now));
        now = now.plus(std::time::Duration::from_secs(1));
    }
    (session, log)
}

fn replay(criterion: &mut Criterion) {
    let (_, log) = conversation(TURNS);
    let key = key();
    let stored: Vec<Vec<u8>> = log.iter().map(|event| event.encode(&key.session)).collect();
    let mut group = criterion.benchmark_group("replay 10,000 turns");
    group.sample_size(20);
    group.throughput(Throughput::Elements(log.len() as u64));
    group.bench_function("evolve", |bench| {
        bench.iter(|| Session::replay(key.clone(), black_box(&log)));
    });
    group.bench_function("decode and evolve", |bench| {
        bench.iter(|| {
            let mut session = Session::new(key.clone());
            for bytes in black_box(&stored) {
                session.evolve(&Event::decode(bytes).expect("a stored event"));
            }
            session
        });
    });
    group.bench_function("encode", |bench| {
        let encode = |event: &Event| event.encode(&key.session).len();
        bench.iter(|| black_box(&log).iter().map(encode).sum::<usize>());
    });
    group.finish();
}

/// A turn costs the same at the start of a session and at the end of a long one.
fn decide(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide submit and settle");
    let agent = agent();
    for turns in [1, 100, TURNS] {
        let (session, log) = conversation(turns);
        let now = log.last().expect("a turn").occurred_at;
        group.bench_function(format!("after {turns} turns"), |bench| {
            bench.iter_batched_ref(
                || {
                    let mut session = session.clone();
                    // A clone is full to the brim: its first turn would pay for making room.
                    turn(&mut session, &agent, now);
                    session
                },
                |session| turn(session, &agent, now),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, replay, decide);
criterion_main!(benches);
