use super::*;
use crate::http::connection::kit::{HANG, Server, within};

const GET: &str = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
const WAIT: &str = "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn a_connection_over_the_limit_is_told_so_and_there_is_room_again_later() {
    let server = Server::start(Limits { connections_max: 1, ..Limits::default() });
    let mut first = server.connect().await;
    first.send(GET).await;
    assert_eq!(first.answer().await.status, 200);

    let mut second = server.connect().await;
    let refusal = second.answer().await;
    assert_eq!(refusal.status, 503);
    assert_eq!(refusal.header("retry-after"), Some("1"));
    assert_eq!(refusal.header("connection"), Some("close"));
    assert!(refusal.body.starts_with(r#"{"error":"#), "{}", refusal.body);
    second.assert_closed().await;

    drop(first);
    within(async {
        loop {
            let mut later = server.connect().await;
            let _ = later.try_send(GET).await;
            if later.answer().await.status == 200 {
                break;
            }
        }
    })
    .await;
}

#[test]
fn slots_are_counted_for_each_address_and_come_back() {
    let limits = Limits { connections_max: 4, connections_per_address_max: 2, ..Limits::default() };
    let slots = Arc::new(Slots::new(&limits));
    let take = |address: &str| Slots::take(&slots, address.parse().unwrap());
    let kept = [take("192.0.2.1").unwrap(), take("::ffff:192.0.2.1").unwrap()];
    assert!(take("192.0.2.1").is_none());
    let others = [take("192.0.2.2").unwrap(), take("127.0.0.1").unwrap()];
    assert!(take("127.0.0.1").is_none(), "four are taken in all");
    drop(kept);
    assert!(take("192.0.2.1").is_some());
    drop(others);
    let taken = slots.taken.lock().unwrap();
    assert_eq!((taken.in_all, taken.by_address.len()), (0, 0));
}

#[test]
fn loopback_is_not_counted_by_address() {
    let limits = Limits { connections_per_address_max: 1, ..Limits::default() };
    let slots = Arc::new(Slots::new(&limits));
    let take = |address: &str| Slots::take(&slots, address.parse().unwrap());
    let taken = ["127.0.0.1", "127.0.0.2", "::1", "::1"].map(take);
    assert!(taken.iter().all(Option::is_some));
}

#[tokio::test]
async fn a_stop_answers_what_is_being_served_and_closes_what_idles() {
    let server = Server::start(Limits::default());
    let silent = server.connect().await;
    let mut idle = server.connect().await;
    idle.send(GET).await;
    idle.answer().await;
    let mut busy = server.connect().await;
    busy.send(WAIT).await;
    within(server.site.entered.notified()).await;

    server.shutdown.send(true).unwrap();
    silent.assert_closed().await;
    idle.assert_closed().await;
    server.site.release.notify_one();
    let answer = busy.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    busy.assert_closed().await;

    let address = server.address;
    server.stopped().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_stop_waits_no_longer_than_its_grace() {
    let server = Server::start_with_grace(Limits::default(), Duration::from_millis(50));
    let mut endless = server.connect().await;
    endless.send(WAIT).await;
    within(server.site.entered.notified()).await;
    server.shutdown.send(true).unwrap();
    server.stopped().await;
    assert_eq!(endless.rest().await.0, "");
}

#[tokio::test]
async fn a_server_whose_stop_switch_is_gone_stops() {
    let server = Server::start(Limits::default());
    drop(server.shutdown);
    within(server.task).await.unwrap();
}

#[tokio::test]
async fn two_addresses_are_served_at_once() {
    let listeners = [(); 2].map(|()| bind(([127, 0, 0, 1], 0).into()).unwrap());
    let addresses = listeners.each_ref().map(|listener| listener.local_addr().unwrap());
    let (_shutdown, stop) = watch::channel(false);
    let service = |_, _| async { crate::http::reply::empty(http::StatusCode::NO_CONTENT) };
    tokio::spawn(serve(listeners.into(), Limits::default().into(), service, stop, HANG));
    for address in addresses {
        let mut wire = crate::http::connection::kit::Wire::connect(address).await;
        wire.send(GET).await;
        assert_eq!(wire.answer().await.status, 204);
    }
}

#[tokio::test]
async fn accepted_sockets_have_the_options_that_slow_readers_call_for() {
    let listener = bind(([127, 0, 0, 1], 0).into()).unwrap();
    let address = listener.local_addr().unwrap();
    let (_client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let (socket, _) = accepted.unwrap();
    configure(&socket).unwrap();
    assert!(socket.nodelay().unwrap());
    let socket = SockRef::from(&socket);
    assert!(socket.keepalive().unwrap());
    // The kernel doubles what it is asked for.
    assert!(socket.send_buffer_size().unwrap() <= 2 * SEND_BUFFER_BYTES);
}
