use std::net::UdpSocket;

use super::*;

struct Says(Result<(), String>);

impl Api for Says {
    fn answers(&self) -> Result<(), String> {
        self.0.clone()
    }

    fn node_is_ready(&self) -> Result<(), String> {
        self.0.clone()
    }
}

#[test]
fn probes_are_named_and_none_is_none() {
    let which: Which = "gateway, dns".parse().unwrap();
    assert_eq!(which.to_string(), "gateway,dns");
    assert_eq!("none".parse::<Which>().unwrap().to_string(), "none");
    let wrong = "gateway,ping".parse::<Which>().unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "\"ping\" is no probe; there are gateway, dns, api and node, several with commas between them, or none"
    );
}

/// What did not work before is not asked after: a host that is cut off can be mended.
#[test]
fn only_what_worked_before_must_work_after() {
    let seen = Observed::default();
    let (well, ill) = (Says(Ok(())), Says(Err("nobody there".to_owned())));
    let mut watch = Watch::new(Probes::default(), &well);
    watch.before(&seen);
    assert_eq!(watch.worked, [Probe::Api, Probe::Node].into());
    assert_eq!(watch.after(&seen), Ok(()));
    watch.api = &ill;
    let silent = watch.after(&seen).unwrap_err();
    assert_eq!(silent.to_string(), "api worked before the change and no longer does: nobody there");
    let mut cut_off = Watch::new(Probes::default(), &ill);
    cut_off.before(&seen);
    assert!(cut_off.is_idle());
}

#[test]
fn a_name_server_is_there_whatever_it_answers() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap();
    let answering = std::thread::spawn(move || {
        let mut question = [0; 512];
        let (length, from) = server.recv_from(&mut question).unwrap();
        // Another's answer first, then: refused.
        server.send_to(&[0xff, 0xff, 0x80], from).unwrap();
        question[2] |= 0x80;
        question[3] |= 5;
        server.send_to(&question[..length], from).unwrap();
    });
    dns::answers(at, Duration::from_secs(5)).unwrap();
    answering.join().unwrap();
    // Nobody listens there any more.
    assert!(dns::answers(at, Duration::from_secs(5)).is_err());
}
