//! Long sends, in rounds.

use sys::stream::RING;

use super::*;

/// What programs count on before the other end reads.
#[test]
fn who_does_not_read_is_sent_as_much_as_the_ring_holds() {
    for chunk in [RING + 1, RING / 3, 100_000] {
        let pair = Pair::on_rings();
        let bytes = vec![7; chunk];
        let mut sent = 0;
        while let Ok(n) = pair.send(0, &bytes) {
            sent += n;
        }
        assert_eq!(sent, RING);
        assert_eq!(pair.drain(1), RING);
        // It has grown, and waits for nobody.
        assert_eq!(pair.send(0, &vec![7; RING]), Ok(RING));
        pair.close();
    }
}

#[test]
fn a_long_send_is_whole_however_much_is_read_meanwhile() {
    let pair = Pair::on_rings();
    let bytes = vec![7; RING - 1];
    for _ in 0..20 {
        let left = std::thread::scope(|scope| {
            let sender = scope.spawn(|| pair.send(0, &bytes));
            let mut left = bytes.len();
            while !sender.is_finished() {
                left -= pair.take(1, 50_000);
            }
            assert_eq!(sender.join().expect("no panic"), Ok(bytes.len()));
            left
        });
        assert_eq!(pair.drain(1), left);
    }
    pair.close();
}
