//! What the core costs by itself: replay of a long log, with and without its decoding, one turn, and a
//! view of a whole long conversation.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use turnd::ids::{AgentId, CallId, LlmId, OwnerId, SessionId, SessionKey, local_tenant};
use turnd::protocol::agent::{AgentConfig, RetryPolicy};
use turnd::protocol::event::Event;
use turnd::protocol::input::{
    Conditions, Identity, Input, MessageInput, MessagesInput, Submit, SubmitBody,
};
use turnd::protocol::json;
use turnd::protocol::llm::LlmResponse;
use turnd::protocol::message::{Message, Role};
use turnd::protocol::view::ViewRequest;
use turnd::session::{
    Bounds, Caller, Command, Context, Effect, ModelOutcome, Session, Shown, Step, Submission,
};
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
        tools: Vec::new(),
    }
}

fn submit(input: Input) -> Command {
    let zoe = OwnerId::parse("zoe").expect("an owner");
    Command::Submit(Box::new(Submission {
        caller: Caller::Frontend(zoe.clone()),
        identity: Identity { id: zoe, metadata: None },
        agent_id: AgentId::parse("helper").expect("an id"),
        turn_id: None,
        queue: false,
        conditions: Conditions::default(),
        input,
        blobs: std::collections::BTreeMap::new(),
    }))
}

fn question() -> Input {
    let message = Message::text(Role::User, "What is the weather in Oslo?");
    Input::Message(MessageInput { message, stream: None })
}

fn decide_one(session: &mut Session, command: Command, now: Timestamp) -> Step {
    let (agent, shown) = (agent(), Shown::new());
    let bounds = Bounds { queued_turns_max: 100, event_bytes_max: 1 << 20 };
    let context = Context { agent: Some(&agent), bounds, shown: &shown };
    session.decide(command, &context, now).expect("accepted")
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
fn turn(session: &mut Session, now: Timestamp) -> Vec<Event> {
    let step = decide_one(session, submit(question()), now);
    let mut events = step.events;
    for effect in step.effects {
        if let Effect::CallModel { id, attempt } = effect {
            events.extend(decide_one(session, answer(id, attempt), now).events);
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
        log.extend(turn(&mut session, now));
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
    for turns in [1, 100, TURNS] {
        let (session, log) = conversation(turns);
        let now = log.last().expect("a turn").occurred_at;
        group.bench_function(format!("after {turns} turns"), |bench| {
            bench.iter_batched_ref(
                || {
                    let mut session = session.clone();
                    // A clone is full to the brim: its first turn would pay for making room.
                    turn(&mut session, now);
                    session
                },
                |session| turn(session, now),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

/// The whole conversation with one new message, as a chat front end sends it: to read it, and to find
/// what is new in it.
fn view(criterion: &mut Criterion) {
    let (session, log) = conversation(TURNS / 2);
    let now = log.last().expect("a turn").occurred_at;
    let view = session.view(&ViewRequest::default()).expect("it exists");
    let mut messages: Vec<Message> = view.messages.iter().map(|it| (**it).clone()).collect();
    messages.push(Message::text(Role::User, "And tomorrow?"));
    let input = Input::Messages(MessagesInput { messages, stream: None, client: None });
    let body = serde_json::json!({ "input": &input }).to_string();
    let body = body.replacen("\"input\":{", "\"input\":{\"agent_id\":\"helper\",", 1);
    let mut group = criterion.benchmark_group("a view of 10,000 messages");
    group.sample_size(20);
    group.bench_function("read", |bench| {
        bench.iter(|| {
            let read = |root: &json::Node<'_>| Submit::read_client(root, 1 << 20);
            let submit = json::decode(black_box(body.as_bytes()), json::DEPTH_MAX, read);
            assert!(matches!(submit.expect("a submit").body, SubmitBody::Turn(_)));
        });
    });
    group.bench_function("decide", |bench| {
        bench.iter_batched(
            || (session.clone(), submit(input.clone())),
            |(mut session, command)| {
                let step = decide_one(&mut session, command, now);
                assert_eq!(step.events.len(), 4, "nothing but the new message");
                (session, step)
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, replay, decide, view);
criterion_main!(benches);
