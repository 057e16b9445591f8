//! Any network and any messages: what the levels promise holds.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sim::{FabricConfig, Noise};
use via::{Reliability, ViState};

use crate::kit::*;

fn network() -> impl Strategy<Value = FabricConfig> {
    let noise = [0_u32..80_000, 0..80_000, 0..80_000, 0..80_000];
    let line = (0_u64..30, prop::option::of(1_000_000_u64..10_000_000_000));
    (any::<u64>(), noise, line, 1_u32..=64, 16_u32..4000).prop_map(
        |(seed, noise, (jitter_us, bandwidth_bps), window, frame_max)| {
            let [loss_ppm, duplicate_ppm, reorder_ppm, corrupt_ppm] = noise;
            FabricConfig {
                seed,
                jitter: us(jitter_us),
                bandwidth_bps,
                noise: Noise {
                    loss_ppm,
                    duplicate_ppm,
                    reorder_ppm,
                    corrupt_ppm,
                },
                window,
                frame_max,
                trace_max: 0,
                ..FabricConfig::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn reliable_levels_deliver_all_in_order(
        config in network(),
        lens in prop::collection::vec(0_u32..5000, 1..20),
        at_reception: bool,
    ) {
        let level = match at_reception {
            true => Reliability::ReliableReception,
            false => Reliability::ReliableDelivery,
        };
        let pair = Pair::new(config, level);
        let (from, to) = (pair.a.region(5000), pair.b.region(20 * 5000));
        for n in 0..lens.len() as u32 {
            post_recv(&pair.vb, &to, n * 5000..(n + 1) * 5000, n.into());
        }
        for (n, &len) in (0..).zip(&lens) {
            from.memory().write(0, &pattern(n, len as usize)).must();
            post_send(&pair.va, &from, 0..len, n);
            // Its bytes are in the buffer until it has left.
            sent(&pair.va);
        }
        for (n, &len) in (0..).zip(&lens) {
            let came = received(&pair.vb);
            prop_assert_eq!((came.immediate, came.length), (Some(n), len));
            prop_assert_eq!(bytes(&to, n as usize * 5000, len as usize), pattern(n, len as usize));
        }
        prop_assert_eq!(pair.va.state(), Ok(ViState::Connected));
        prop_assert_eq!(pair.vb.state(), Ok(ViState::Connected));
    }

    #[test]
    fn unreliable_delivery_delivers_intact_and_at_most_once(
        config in network(),
        lens in prop::collection::vec(0_u32..5000, 1..40),
    ) {
        let pair = Pair::new(config, Reliability::Unreliable);
        let (from, to) = (pair.a.region(5000), pair.b.region(40 * 5000));
        for n in 0..lens.len() as u32 {
            post_recv(&pair.vb, &to, n * 5000..(n + 1) * 5000, n.into());
        }
        for (n, &len) in (0..).zip(&lens) {
            from.memory().write(0, &pattern(n, len as usize)).must();
            post_send(&pair.va, &from, 0..len, n);
            sent(&pair.va);
        }
        pair.fabric.sleep(ms(1000));
        let mut seen = BTreeSet::new();
        for came in drain(|| pair.vb.recv_done()) {
            let came = came.ok();
            prop_assert!(came.is_ok(), "{:?}", came);
            let came = came.must();
            let n = came.immediate.must();
            let len = lens[n as usize];
            prop_assert!(seen.insert(n), "{} came twice", n);
            prop_assert_eq!(came.length, len);
            let at = came.token as usize * 5000;
            prop_assert_eq!(bytes(&to, at, len as usize), pattern(n, len as usize));
        }
        let noise = config.noise;
        if noise.loss_ppm + noise.corrupt_ppm + noise.reorder_ppm == 0 {
            prop_assert_eq!(seen.len(), lens.len());
        }
    }
}
