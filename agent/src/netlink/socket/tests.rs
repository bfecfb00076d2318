//! Answers that a kernel gives only once in a while, and ones it must never be believed to have given.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;

use nix::errno::Errno;

use super::{
    CAPPED, DUMP, DUMP_INTERRUPTED, DUMP_TRIES, Dumped, HAS_TEXT, KIND_DONE, KIND_ERROR, KIND_OVERRUN,
    NetlinkError, REQUEST, Refused, Socket, WINDOW, WINDOW_BYTES, Wire,
};
use crate::netlink::wire::{Malformed, Message, read_u32};

const LINK: u16 = 16;

/// A kernel that answers each datagram it is sent by the next of these lists of datagrams, then is silent.
struct Script {
    answers: RefCell<VecDeque<Vec<Vec<u8>>>>,
    ready: RefCell<VecDeque<Vec<u8>>>,
}

impl Script {
    fn of(answers: Vec<Vec<Vec<u8>>>) -> Socket<Self> {
        Socket::over(Self { answers: RefCell::new(answers.into()), ready: RefCell::default() })
    }
}

impl Wire for Script {
    fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        self.ready.borrow_mut().extend(self.answers.borrow_mut().pop_front().unwrap_or_default());
        Ok(datagram.len())
    }

    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let datagram = self.ready.borrow_mut().pop_front().ok_or(Errno::EAGAIN)?;
        into[..datagram.len()].copy_from_slice(&datagram);
        Ok(datagram.len())
    }
}

/// An object, numbered.
fn item(sequence: u32, flags: u16, number: u32) -> Vec<u8> {
    let mut message = Message::new(LINK, flags);
    message.raw(&number.to_ne_bytes());
    message.finish(sequence)
}

/// An end or an acknowledgement with this result.
fn result(kind: u16, sequence: u32, flags: u16, code: i32) -> Vec<u8> {
    let mut message = Message::new(kind, flags);
    message.raw(&code.to_ne_bytes());
    if kind == KIND_ERROR {
        message.raw(&[0; 16]);
    }
    if flags & HAS_TEXT != 0 {
        message.attr(1, b"because\0");
    }
    message.finish(sequence)
}

fn done(sequence: u32, flags: u16) -> Vec<u8> {
    result(KIND_DONE, sequence, flags, 0)
}

/// All numbers there are; one over 100 can't be read.
fn dump(socket: &mut Socket<Script>) -> Result<Dumped<u32>, NetlinkError> {
    socket.dump(&Message::new(LINK + 2, REQUEST | DUMP), |frame| match read_u32(frame.payload, 0) {
        Some(number) if number <= 100 => Ok(Some(number)),
        _ => Err(Malformed),
    })
}

#[test]
fn a_dump_of_several_datagrams_with_what_can_not_be_read_counted() {
    let first = [item(1, 0, 1), item(1, 0, 101), item(7, 0, 50)].concat();
    let mut socket = Script::of(vec![vec![first, item(1, 0, 2), done(1, 0)]]);
    let dumped = dump(&mut socket).unwrap();
    assert_eq!((dumped.items, dumped.unreadable, socket.sent()), (vec![1, 2], 1, 1));
}

#[test]
fn an_interrupted_dump_is_taken_again_and_what_it_brought_forgotten() {
    let interrupted = vec![[item(1, 0, 1), item(1, DUMP_INTERRUPTED, 2), done(1, 0)].concat()];
    let at_the_end = vec![item(2, 0, 1), done(2, DUMP_INTERRUPTED)];
    let mut socket = Script::of(vec![interrupted, at_the_end, vec![item(3, 0, 9), done(3, 0)]]);
    assert_eq!(dump(&mut socket).unwrap().items, [9]);
    assert_eq!(socket.sent(), 3);
}

#[test]
fn interrupted_every_time_is_said() {
    let answers = (1..=100).map(|sequence| vec![done(sequence, DUMP_INTERRUPTED)]).collect();
    let mut socket = Script::of(answers);
    let error = dump(&mut socket).unwrap_err();
    assert!(matches!(error, NetlinkError::Unsteady { tries: DUMP_TRIES }), "{error}");
}

#[test]
fn a_reply_without_an_end_is_no_reply() {
    let mut whole = item(1, 0, 1);
    whole.truncate(17);
    for (datagram, said) in [
        (item(1, 0, 1), "the kernel did not answer within 10 s"),
        ([item(1, 0, 1), result(KIND_OVERRUN, 1, 0, 0)].concat(), "ended before it was complete"),
        (vec![0; super::BUFFER], "ended before it was complete"),
        (whole, "can't be read"),
    ] {
        let error = dump(&mut Script::of(vec![vec![datagram]])).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
}

/// Some dumps begin and only then find that they can't go on.
#[test]
fn a_dump_that_ends_with_an_error_is_one() {
    let end = result(KIND_DONE, 1, HAS_TEXT, -(Errno::EINVAL as i32));
    let error = dump(&mut Script::of(vec![vec![item(1, 0, 1), end]])).unwrap_err();
    let expected = Refused { errno: Errno::EINVAL, text: Some("because".into()) };
    assert_eq!(error.refused(), Some(&expected));
}

#[test]
fn each_refusal_is_known_by_its_place_across_windows() {
    let messages: Vec<Message> = (0..WINDOW + 2).map(|_| Message::new(LINK, REQUEST)).collect();
    let answer = |sequence: usize| {
        let refused = sequence == 3 || sequence == WINDOW + 2;
        let (flags, code) = if refused { (CAPPED | HAS_TEXT, -(Errno::EEXIST as i32)) } else { (CAPPED, 0) };
        result(KIND_ERROR, u32::try_from(sequence).unwrap(), flags, code)
    };
    let first = (1..=WINDOW).map(answer).collect();
    let second = (WINDOW + 1..=WINDOW + 2).map(answer).collect();
    let refused = Script::of(vec![first, second]).requests(messages).unwrap();
    let why = Refused { errno: Errno::EEXIST, text: Some("because".into()) };
    assert_eq!(refused, [(2, why.clone()), (WINDOW + 1, why)]);
}

/// What is long is sent in several datagrams, and a single message whatever its length.
#[test]
fn a_datagram_ends_before_it_is_too_long() {
    let long = |bytes: usize| {
        let mut message = Message::new(LINK, REQUEST);
        message.raw(&vec![0; bytes]);
        message
    };
    let third = WINDOW_BYTES / 3 - 16;
    let messages = vec![long(third), long(third), long(third), long(third), long(2 * WINDOW_BYTES)];
    let answer = |sequence: u32| result(KIND_ERROR, sequence, CAPPED, -(Errno::EINVAL as i32));
    let answers = vec![vec![answer(1), answer(2), answer(3)], vec![answer(4)], vec![answer(5)]];
    let refused = Script::of(answers).requests(messages).unwrap();
    let places: Vec<usize> = refused.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [0, 1, 2, 3, 4]);
}
