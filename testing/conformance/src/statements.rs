//! The 210 statements of the VIPL checklist, and where each is tested.

use std::fmt;

use crate::lab::Lab;

/// A statement of the checklist.
#[derive(Clone, Copy)]
pub struct Statement {
    /// Its number, from 1.
    pub number: u16,
    /// Its group, A to P.
    pub group: char,
    /// What it says.
    pub text: &'static str,
    /// Its test in this suite, which runs on every provider.
    pub(crate) body: Option<Body>,
    /// The C program that tests it through `libvipl.so`, in `abi/vipl/tests/c`.
    pub program: Option<&'static str>,
}

pub(crate) type Body = fn(&dyn Lab);

impl Statement {
    /// All of them, in order.
    pub const ALL: [Self; 210] = statements!(table);

    /// Whether this suite tests it.
    #[must_use]
    pub fn is_in_suite(&self) -> bool {
        self.body.is_some()
    }
}

impl fmt::Debug for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: {}", self.group, self.number, self.text)
    }
}

/// Gives every statement to a macro, as rows of
/// `number group "text" module::function + "C program";`, of which one or both of the last two are there.
#[macro_export]
macro_rules! statements {
    ($each:ident) => {
        $each! {
            1 A "The control segment has VIPL's size and offsets."
                + "layout";
            2 A "Address and data segments have VIPL's size and offsets."
                + "layout";
            3 A "The descriptor has 64 bytes, under both spellings of its members."
                + "layout";
            4 A "An address field has eight bytes on every data model."
                + "layout";
            5 A "The NIC attributes have VIPL's offsets."
                + "layout";
            6 A "VI attributes, memory attributes and error descriptor have VIPL's offsets."
                + "layout";
            7 A "The host part of an address begins at byte 4."
                + "layout";
            8 A "The return codes of both headers have their numbers."
                + "layout";
            9 A "The two return codes of the Giganet header have their numbers."
                + "layout";
            10 A "The VI states have their numbers."
                + "layout";
            11 A "The control bits have their values."
                + "layout";
            12 A "The status bits have their values; the error mask covers bits 1 to 8."
                + "layout";
            13 A "Error and resource codes have their numbers."
                + "layout";
            14 A "Every entry point resolves by name, with C linkage."
                + "abi_symbols";
            15 A "Programs in Intel's and in Giganet's spelling compile against one header."
                + "abi_intel_names";
            16 A "The timeout 0xFFFFFFFF is without limit on LP64."
                + "abi_infinite";
            17 B "A known device opens; an unknown name is an invalid parameter."
                nic::s017_opens_by_name + "abi_nic";
            18 B "Opening twice gives two handles, and closing one leaves the other."
                nic::s018_two_handles_are_independent + "abi_nic";
            19 B "A null name or result pointer is an invalid parameter."
                + "abi_nic";
            20 B "Handles run out with an error of resources, and come back with closes."
                nic::s020_handles_run_out_and_come_back + "abi_nic";
            21 B "A closed handle is an invalid parameter."
                nic::s021_closed_handle_is_refused + "abi_nic";
            22 B "The attributes of a NIC do not change."
                nic::s022_attributes_are_fixed + "abi_nic";
            23 B "Every NIC offers unreliable delivery."
                nic::s023_offers_unreliable_delivery;
            24 B "A NIC transfers at least 32768 bytes at a time."
                nic::s024_transfers_are_large_enough;
            25 B "The local address is readable, and the same for two handles."
                nic::s025_address_belongs_to_the_device + "abi_nic";
            26 B "Closing with live objects succeeds; the peers of its VIs see an error."
                nic::s026_close_disconnects_everything;
            27 C "Two tags differ."
                memory::s027_tags_differ;
            28 C "Tags run out with an error of resources, and come back."
                memory::s028_tags_run_out_and_come_back;
            29 C "A tag that a VI or region uses is not destroyed."
                memory::s029_tag_in_use_stays;
            30 C "An unknown tag is not destroyed."
                memory::s030_unknown_tag_cannot_be_destroyed + "abi_memory";
            31 C "An unaligned range of one byte can be registered."
                memory::s031_registers_one_byte + "abi_memory";
            32 C "A length of zero is an invalid parameter."
                + "abi_memory";
            33 C "A region above the largest size is an error of resources."
                memory::s033_too_large_a_region_is_refused;
            34 C "Regions run out with an error of resources, and come back."
                memory::s034_regions_run_out_and_come_back;
            35 C "No registration returns handle 0."
                memory::s035_handle_zero_names_nothing + "abi_memory";
            36 C "A range registered twice has two handles, each valid without the other."
                memory::s036_one_range_has_many_handles;
            37 C "An invalid tag is refused at registration."
                memory::s037_unknown_tag_registers_nothing + "abi_memory";
            38 C "The right to RDMA read is refused where no level has RDMA read."
                memory::s038_rdma_read_right_needs_rdma_read;
            39 C "Without attributes, old programs register memory without rights; strict ones are refused."
                memory::s039_region_without_tag_is_for_old_programs + "abi_memory";
            40 C "Deregistering with a wrong address or handle is an invalid parameter."
                memory::s040_deregisters_only_what_is_registered + "abi_memory";
            41 C "A send from deregistered memory fails its protection check."
                memory::s041_deregistered_memory_is_not_sent;
            42 C "A query returns the attributes last given."
                memory::s042_query_tells_what_was_set;
            43 C "Taking back the right to RDMA write makes the next write fail."
                memory::s043_revoked_right_stops_the_next_write;
            44 C "Handles of another process or NIC handle are refused."
                memory::s044_handles_of_others_are_refused;
            45 D "A new VI is idle and its queues are empty."
                vi::s045_starts_idle_and_empty;
            46 D "An unsupported level, two levels or none are an invalid level."
                vi::s046_only_offered_levels + "abi_vi";
            47 D "A transfer size above the NIC's is an invalid MTU."
                vi::s047_transfer_size_has_a_limit;
            48 D "QoS 0 works; an unknown QoS is invalid."
                vi::s048_only_qos_zero;
            49 D "An invalid tag is refused at creation."
                vi::s049_unknown_tag_makes_no_vi;
            50 D "Without a tag, a VI of an old program reaches any memory of its NIC handle; strict ones are refused."
                vi::s050_vi_without_tag_is_for_old_programs;
            51 D "RDMA read at a level that lacks it is refused."
                vi::s051_rdma_read_only_where_it_exists;
            52 D "A completion queue for both queues, for one, or none: all work."
                vi::s052_queues_choose_their_completion_queues;
            53 D "VIs run out with an error of resources, and come back."
                vi::s053_vis_run_out_and_come_back;
            54 D "A query returns the attributes given at creation."
                vi::s054_query_tells_what_was_given;
            55 D "A queue is empty when nothing is left to dequeue, completed or not."
                vi::s055_empty_means_nothing_to_dequeue;
            56 D "Attributes change in idle, and in no other state."
                vi::s056_attributes_change_only_in_idle;
            57 D "A VI that is connected, pending or in error is not destroyed."
                vi::s057_only_idle_vis_are_destroyed;
            58 D "A VI with an undrained queue is not destroyed; for old programs it is, if all is completed."
                vi::s058_undrained_vi_is_destroyed_for_old_programs_only;
            59 D "Every call on a destroyed VI is an invalid parameter."
                vi::s059_destroyed_vi_is_refused + "abi_vi";
            60 E "Request, wait and accept connect both VIs and tell each side of the other."
                client_server::s060_request_wait_accept;
            61 E "The address of the asker does not influence matching."
                client_server::s061_askers_address_does_not_match;
            62 E "Discriminators that differ in a byte or in length do not match."
                client_server::s062_only_the_same_discriminator_matches;
            63 E "A request that nobody waits for is told so at once."
                client_server::s063_nobody_waiting_is_told_at_once;
            64 E "A request with a timeout of zero is an invalid parameter."
                client_server::s064_request_needs_time;
            65 E "A rejected request says so, and its VI is idle."
                client_server::s065_reject;
            66 E "A request without an answer times out, and its VI is idle."
                client_server::s066_unanswered_request_times_out;
            67 E "A wait that nobody calls times out."
                client_server::s067_wait_times_out;
            68 E "A VI whose request is pending says so."
                client_server::s068_pending_while_asking;
            69 E "Accepting with another level is refused, and the client goes on waiting."
                answering::s069_accept_needs_the_same_level;
            70 E "Accepting with another transfer size or QoS is refused."
                answering::s070_accept_needs_the_same_transfer_size;
            71 E "After a refused accept the server may adapt its VI and accept again."
                answering::s071_server_adapts_and_accepts_again + "abi_connect";
            72 E "After a refused accept the server may reject."
                answering::s072_reject_after_a_failed_accept;
            73 E "RDMA flags may differ, and the client is told."
                answering::s073_rdma_flags_may_differ;
            74 E "Accepting with a VI that is not idle is an invalid state."
                answering::s074_accept_needs_an_idle_vi;
            75 E "An answered request is an invalid parameter."
                answering::s075_answered_request_is_used_up + "abi_vi";
            76 E "An accept after the client gave up fails and leaves the VI idle."
                answering::s076_accept_comes_too_late;
            77 E "A request on a VI that is not idle is an invalid state."
                client_server::s077_request_needs_an_idle_vi;
            78 E "Receives posted before a failed request stay posted and are used later."
                client_server::s078_receives_survive_failed_requests;
            79 E "Receives posted before connecting take what the peer sends at once."
                client_server::s079_receives_posted_before_connecting_are_used;
            80 E "Two waiters on one address serve two clients."
                client_server::s080_two_waiters_serve_two_clients;
            81 E "An unreachable host is reported within the timeout."
                client_server::s081_unreachable_host;
            82 E "The buffer for the client's address is not overrun."
                + "abi_connect";
            83 E "Both ends in one process connect and transfer."
                client_server::s083_loopback;
            84 F "Mirror-image requests connect, whichever comes first."
                peer::s084_mirror_images_connect;
            85 F "A peer request does not wait."
                peer::s085_request_does_not_wait;
            86 F "Polling says not done, then the peer's attributes."
                peer::s086_done_polls;
            87 F "Waiting lasts until the match or the request's timeout."
                peer::s087_wait_ends_with_the_request;
            88 F "Attributes that differ fail both sides with the code of the attribute."
                peer::s088_mismatch_fails_both;
            89 F "Peer requests and waiters do not match."
                peer::s089_peers_and_waiters_do_not_match;
            90 F "Without a request its outcome is an invalid state."
                peer::s090_no_request_no_outcome;
            91 F "Many peer requests at once all complete."
                peer::s091_many_at_once + "legacy_armci";
            92 G "A local disconnect leads to idle and flushes the queues in order."
                disconnect::s092_local_disconnect_flushes;
            93 G "After it the queues drain down to empty."
                disconnect::s093_drains_to_empty;
            94 G "A receive completed before it stays successful."
                disconnect::s094_completed_receive_stays_successful;
            95 G "The peer goes to the error state, is flushed, and is told once."
                disconnect::s095_remote_disconnect_is_an_error;
            96 G "Posts in the error state succeed and are flushed."
                disconnect::s096_posts_in_error_are_flushed;
            97 G "A disconnect in the error state leads to idle, and the VI works again."
                disconnect::s097_connects_again_after_an_error;
            98 G "A disconnect in idle succeeds and flushes."
                disconnect::s098_disconnect_in_idle_flushes;
            99 G "Disconnecting twice succeeds twice."
                disconnect::s099_disconnect_twice;
            100 G "A disconnect ends a pending request."
                disconnect::s100_disconnect_ends_a_pending_call;
            101 G "Sends posted before connecting are flushed."
                disconnect::s101_sends_before_connecting_are_flushed;
            102 G "A disconnect at either end wakes whoever waits for a receive."
                disconnect::s102_disconnect_wakes_waiters;
            103 G "A killed peer puts the VI into the error state."
                disconnect::s103_killed_peer_is_noticed;
            104 G "Other connections go on."
                disconnect::s104_other_connections_go_on;
            105 H "Done on an empty queue says that it is empty."
                queues::s105_done_on_an_empty_queue + "abi_vi";
            106 H "Done with an incomplete head says not done."
                queues::s106_done_on_an_incomplete_head;
            107 H "Done returns descriptors in posting order."
                queues::s107_done_in_posting_order;
            108 H "Done does not block behind another thread's wait."
                queues::s108_done_passes_a_waiter;
            109 H "Wait returns a completed head at once, with any timeout."
                queues::s109_wait_on_a_completed_head;
            110 H "Wait with an incomplete head times out."
                queues::s110_wait_times_out;
            111 H "Wait on an empty queue says so at once."
                queues::s111_wait_on_an_empty_queue;
            112 H "Wait on a queue bound to a completion queue is refused."
                queues::s112_bound_queues_are_not_waited_on;
            113 H "A misaligned descriptor is an asynchronous error and is not queued."
                queues::s113_misaligned_descriptor;
            114 H "So is one outside its region, or in a region of another tag."
                queues::s114_descriptor_outside_its_region;
            115 H "One descriptor more than the queue takes is an overrun."
                queues::s115_queues_have_a_limit;
            116 H "A completed descriptor can be posted again as it is."
                queues::s116_reposts_with_a_stale_status;
            117 H "The status says done, and which operation it was."
                queues::s117_status_tells_the_operation;
            118 H "Completion leaves control, segment count and segments alone."
                queues::s118_completion_changes_nothing_else;
            119 H "Nothing behind the last segment is touched."
                queues::s119_nothing_behind_the_last_segment;
            120 H "A descriptor whose done bit is set is found complete."
                queues::s120_done_bit_is_last;
            121 I "Messages of every size arrive whole, and both ends say their length."
                send_recv::s121_every_size;
            122 I "A send without segments uses up one receive."
                send_recv::s122_no_segments_is_an_empty_message;
            123 I "A receive without segments takes an empty message."
                send_recv::s123_receive_without_segments;
            124 I "An empty message carries immediate data."
                send_recv::s124_empty_message_with_immediate;
            125 I "The status says whether immediate data came."
                send_recv::s125_immediate_is_flagged;
            126 I "The immediate bit of a posted receive means nothing."
                send_recv::s126_immediate_bit_of_a_receive_means_nothing;
            127 I "Gathering and scattering over unrelated boundaries keep the bytes in order."
                send_recv::s127_gather_and_scatter;
            128 I "Too many segments are a format error."
                send_recv::s128_too_many_segments;
            129 I "A reserved operation or control bit is a format error."
                send_recv::s129_reserved_control_bits;
            130 I "More than the transfer size is a length error, and nothing arrives."
                send_recv::s130_longer_than_the_transfer_size;
            131 I "A segment with a wrong handle, range or tag is a protection error."
                send_recv::s131_segments_must_lie_in_their_region;
            132 I "A message longer than the receive is a length error and stays within it."
                send_recv::s132_longer_than_the_receive;
            133 I "A message shorter than the receive leaves the rest of it alone."
                send_recv::s133_shorter_than_the_receive;
            134 I "100,000 numbered messages arrive once each and in order."
                send_recv::s134_all_messages_once_in_order;
            135 I "Unreliable messages arrive whole and at most once."
                send_recv::s135_unreliable_messages_intact_at_most_once;
            136 I "Both directions at full load make progress."
                send_recv::s136_both_directions_at_full_load;
            137 J "An RDMA write lands where it says, and the target sees no completion."
                rdma::s137_write_lands_where_it_says;
            138 J "With immediate data it uses up a receive, and the data is there by then."
                rdma::s138_write_with_immediate_uses_a_receive;
            139 J "Its data is there before a later send arrives."
                rdma::s139_write_is_there_before_the_next_send;
            140 J "A VI that does not accept RDMA writes refuses them."
                rdma::s140_vi_must_accept_writes;
            141 J "Memory without the right, of another tag, outside or stale is not written."
                rdma::s141_region_must_accept_the_write;
            142 J "A refused write is an asynchronous error at the target."
                rdma::s142_refused_write_is_reported_at_the_target;
            143 J "With immediate data it is an error in the receive instead."
                rdma::s143_refused_write_with_immediate;
            144 J "The initiator of a refused write learns of it at reliable reception."
                rdma::s144_initiator_learns_of_the_refusal;
            145 J "An empty RDMA write touches nothing."
                rdma::s145_empty_write;
            146 J "An RDMA write without an address segment is a format error."
                rdma::s146_write_needs_an_address_segment;
            147 J "RDMA in a posted receive is a format error."
                rdma::s147_receives_are_no_rdma;
            148 J "An RDMA read scatters the remote range."
                rdma::s148_read_scatters;
            149 J "A refused RDMA read fails at both ends and breaks the connection."
                rdma::s149_refused_read;
            150 J "RDMA read without support is a format error."
                rdma::s150_no_read_where_there_is_none;
            151 J "A send posted after an RDMA read is not done before it."
                rdma::s151_sends_stay_behind_reads;
            152 J "A fence holds a descriptor back until earlier reads have finished."
                rdma::s152_fence_waits_for_reads;
            153 K "Unreliable, no receive posted: dropped, and nobody else is harmed."
                reliability::s153_ud_without_a_receive;
            154 K "Reliable delivery, no receive posted: the connection breaks."
                reliability::s154_rd_without_a_receive;
            155 K "Reliable reception, no receive posted: the sender learns why."
                reliability::s155_rr_without_a_receive;
            156 K "Unreliable, receive too small: only that receive fails."
                reliability::s156_ud_receive_too_small;
            157 K "Reliable, receive too small: the connection breaks."
                reliability::s157_reliable_receive_too_small;
            158 K "Unreliable, bad send: only that send fails."
                reliability::s158_ud_bad_send;
            159 K "Reliable, bad send: later ones are flushed, earlier ones succeed."
                reliability::s159_reliable_bad_send;
            160 K "Reliable reception: done means that the data is in the target's memory."
                reliability::s160_rr_done_means_arrived;
            161 K "Reliable levels hold what they promise over a bad medium."
                reliability::s161_reliable_over_a_bad_medium;
            162 K "Unreliable delivery holds what it promises over a bad medium."
                reliability::s162_unreliable_over_a_bad_medium;
            163 K "Permanent loss ends in an error, never in a hang."
                reliability::s163_permanent_loss_ends;
            164 K "A failed descriptor has exactly one error bit."
                reliability::s164_one_error_bit;
            165 L "An empty completion queue says not done."
                completion_queue::s165_empty_queue;
            166 L "Each completion gives one entry, for the right queue."
                completion_queue::s166_one_entry_a_completion;
            167 L "An entry promises that Done finds the descriptor."
                completion_queue::s167_an_entry_is_a_promise;
            168 L "An entry does not dequeue the descriptor."
                completion_queue::s168_an_entry_leaves_the_descriptor;
            169 L "Waiting for an entry times out, or returns at once."
                completion_queue::s169_wait;
            170 L "Flushed descriptors give entries too."
                completion_queue::s170_flushed_descriptors_have_entries;
            171 L "Entries of one queue are in the order of completion."
                completion_queue::s171_entries_keep_the_order_of_their_queue;
            172 L "Two VIs under load lose no entry."
                completion_queue::s172_no_entry_is_lost_under_load;
            173 L "Resizing keeps bound VIs and unread entries."
                completion_queue::s173_resize_keeps_entries;
            174 L "Resizing above the limit is an error of resources."
                completion_queue::s174_resize_has_a_limit;
            175 L "A bound completion queue is not destroyed; an unbound one is."
                completion_queue::s175_bound_queue_stays;
            176 L "Entries go with their VI."
                completion_queue::s176_entries_go_with_their_vi;
            177 L "Done before the entry was read does no harm."
                completion_queue::s177_done_before_the_entry;
            178 L "Completion queues and their entries run out."
                completion_queue::s178_queues_run_out;
            179 L "More completions than entries lose nothing."
                completion_queue::s179_overrun_loses_nothing;
            180 M "A handler for a completed head is called once, with the descriptor."
                notify::s180_completed_head;
            181 M "A handler for an incomplete head is called when it completes."
                notify::s181_incomplete_head;
            182 M "One registration serves one completion."
                notify::s182_one_registration_one_call;
            183 M "Registrations are served in order."
                notify::s183_registrations_are_served_in_order;
            184 M "A handler on a completion queue takes the entry."
                notify::s184_completion_queue;
            185 M "Destroying the object cancels its handlers."
                notify::s185_destruction_cancels;
            186 M "A handler may post, send and register again."
                notify::s186_handlers_may_call;
            187 M "A null handler is an invalid parameter."
                + "abi_vi";
            188 N "Without a handler an error is logged and the program goes on."
                async_errors::s188_without_a_handler + "abi_notify";
            189 N "The handler gets a complete description."
                async_errors::s189_error_is_filled_in;
            190 N "Removing the handler restores the default."
                async_errors::s190_default_handler_comes_back + "abi_notify";
            191 N "A lost connection is reported for a VI that is in the error state."
                async_errors::s191_connection_lost_means_error;
            192 N "A handler may query, disconnect and destroy."
                async_errors::s192_handler_may_clean_up;
            193 N "Handlers of two NIC handles are independent."
                async_errors::s193_handlers_are_independent;
            194 N "Nothing is reported for a VI after its disconnect returned."
                async_errors::s194_nothing_after_the_disconnect;
            195 O "The own host's name gives the local address."
                name_service::s195_own_host + "abi_names";
            196 O "The name service can be started twice."
                + "abi_names";
            197 O "Unknown names, and lookups before the start, are errors of the name service."
                name_service::s197_unknown_name + "abi_names";
            198 O "A lookup writes nothing behind the host part."
                + "abi_names";
            199 O "An index beyond the last address is an error of the name service."
                name_service::s199_index_beyond_the_last + "abi_names";
            200 O "An address gives the name; a short buffer is told the size it lacks."
                name_service::s200_name_of_an_address + "abi_names";
            201 O "An address outlives the name service."
                name_service::s201_address_outlives_the_service + "abi_names";
            202 P "Sixteen threads on sixteen VIs share a completion queue."
                robustness::s202_sixteen_threads_on_one_queue;
            203 P "Two threads post to one queue."
                robustness::s203_two_threads_post_to_one_queue;
            204 P "Nonsense is an invalid parameter to every call."
                robustness::s204_nonsense_is_refused + "abi_handles";
            205 P "After fork the child's handles are invalid and the parent's work."
                + "abi_fork";
            206 P "Signals do not end a wait."
                robustness::s206_signals_do_not_end_a_wait + "abi_signals";
            207 P "A thousand cycles of open, connect, transfer and close leave nothing behind."
                robustness::s207_nothing_is_left_over;
            208 P "Garbage on the wire harms nothing but its own connection."
                robustness::s208_garbage_harms_its_own_connection_only;
            209 P "Forged frames do not reach another VI."
                robustness::s209_forged_frames_stay_on_their_connection;
            210 P "The patterns of old programs run unchanged."
                + "legacy_close";
        }
    };
}

macro_rules! table {
    ($($number:literal $group:ident $text:literal $($module:ident::$name:ident)? $(+ $program:literal)?;)*) => {
        [$(Statement {
            number: $number,
            group: letter(stringify!($group)),
            text: $text,
            body: first(&[$(crate::$module::$name as Body)?]),
            program: first(&[$($program)?]),
        }),*]
    };
}

use {statements, table};

const fn letter(group: &str) -> char {
    group.as_bytes()[0] as char
}

const fn first<T: Copy>(given: &[T]) -> Option<T> {
    match given {
        [first, ..] => Some(*first),
        [] => None,
    }
}
