//! The first start, and what it tells a person to type.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::kit::{Caller, Draw, Patience, Place, seed, wait_for};

/// The lines of a greeting that are meant to be pasted.
fn pasted(greeting: &str) -> Vec<&str> {
    greeting
        .lines()
        .filter(|line| line.starts_with("export ") || line.starts_with("curl "))
        .collect()
}

#[test]
fn the_first_start_says_where_it_listens_and_where_its_data_is() {
    let mut place = Place::fresh();
    place.set("TURND_API_KEY", "");
    let server = place.serve();
    let greeting = server.stdout();
    let mut lines = greeting.lines();
    assert_eq!(lines.next().unwrap(), format!("turnd listens on http://{}", server.address));
    assert_eq!(lines.next().unwrap(), "data folder: turnd-data");
    let key = greeting.lines().find_map(|line| line.strip_prefix("export TURND_KEY=")).unwrap();
    assert!(key.starts_with("tk_") && key.len() > 40, "{key}");
    server.kill();

    // The key is shown once, and good for as long as the data is.
    let server = place.serve();
    let greeting = server.stdout();
    assert_eq!(greeting.lines().count(), 2, "{greeting}");
    let address = server.address;
    let machine = Caller { address, bearer: Some(key.to_owned()), api: "machine" };
    assert_eq!(machine.no_stream("none", "", &[]).status, 404);
    let stranger = Caller { bearer: Some(format!("{key}0")), ..machine };
    assert_eq!(stranger.no_stream("none", "", &[]).status, 401);
}

#[test]
fn the_lines_that_the_first_start_shows_work_when_they_are_pasted() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("there is no curl here: nothing is tested");
        return;
    }
    let mut place = Place::fresh();
    place.set("TURND_API_KEY", "");
    let server = place.serve();
    let greeting = server.stdout();
    let lines = pasted(&greeting);
    assert_eq!(lines.len(), 4, "{greeting}");
    // The stream never ends by itself: it is read up to the end of the turn.
    let (stream, others) = lines.split_last().unwrap();
    let script =
        format!("set -e\n{}\necho\n{stream} | sed '/turn.completed/q'\n", others.join("\n"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}\n{errors}");
    let (accepted, frames) = text.split_once('\n').unwrap();
    assert!(accepted.starts_with(r#"{"session_id":"first","turn_id":""#), "{accepted}");
    assert!(accepted.ends_with(r#","queued":false,"seq":2}"#), "{accepted}");
    assert!(frames.starts_with("id: 1\nevent: session.created\ndata: {"), "{frames}");
    assert!(frames.contains("You said: hello"), "{frames}");
    assert!(frames.ends_with("event: turn.completed\n"), "{frames}");
}

#[test]
fn the_lines_to_paste_name_an_agent_that_is_there() {
    let mut place = Place::fresh();
    place.set("TURND_API_KEY", "");
    place.write_manifest("[agent.helper]\nllm = \"demo\"\nmodel = \"demo\"\n");
    let server = place.serve();
    let greeting = server.stdout();
    assert!(greeting.contains(r#""agent_id":"helper""#), "{greeting}");
}

#[test]
fn the_lines_to_paste_lead_to_the_public_url() {
    let mut place = Place::fresh();
    place.set("TURND_API_KEY", "");
    place.set("TURND_PUBLIC_URL", "https://chat.example.com/");
    let server = place.serve();
    let greeting = server.stdout();
    assert!(greeting.starts_with(&format!("turnd listens on http://{}\n", server.address)));
    for line in pasted(&greeting).into_iter().filter(|line| line.contains("curl")) {
        assert!(line.contains(" https://chat.example.com/api/"), "{line}");
    }
}

#[test]
fn a_first_start_that_fails_does_not_keep_the_key_to_itself() {
    let taken = Place::new().serve_once();
    let mut place = Place::fresh();
    place.set("TURND_API_KEY", "");
    let exit = place.run(&["serve", "--listen", &taken.address.to_string()]);
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(1), ""));
    let greeting = place.serve().stdout();
    assert_eq!(pasted(&greeting).len(), 4, "{greeting}");
}

#[test]
fn a_first_start_that_is_killed_is_a_first_start_again_or_was_one() {
    let seed = seed();
    println!("TURND_TORTURE_SEED={seed}");
    let mut draw = Draw::new(seed);
    let mut place = Place::fresh();
    place.set("TURND_API_KEY", "");
    for _ in 0..4 {
        let start = place.start(&["serve", "--listen", "127.0.0.1:0"]);
        let alive = Patience::new(Duration::from_millis(draw.below(1500)));
        wait_for("its time", || alive.is_over().then_some(()));
        drop(start);
    }
    let server = place.serve();
    assert_eq!(server.stranger().get("/healthz").status, 200);
}

#[test]
fn the_data_is_for_the_servers_user_alone() {
    let place = Place::fresh();
    let server = place.serve();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.data()), 0o700);
    let mut files = 0;
    for file in std::fs::read_dir(place.data()).unwrap().map(Result::unwrap) {
        let expected = if file.file_type().unwrap().is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&file.path()), expected, "{}", file.path().display());
        files += 1;
    }
    assert!(files > 1);
    drop(server);
}
