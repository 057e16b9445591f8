%% An Erlang node that sends back what another sends it, and the other.
-module(echo).
-export([server/0, client/1]).

server() ->
    register(echo, self()),
    io:format("ready~n"),
    loop().

loop() ->
    receive
        {From, stop} -> From ! stopped, timer:sleep(100), halt(0);
        {From, Term} -> From ! {echoed, Term}, loop()
    end.

%% Small terms one after the other, binaries up to 3 MB, and ten processes at once.
client([Node]) ->
    pong = net_adm:ping(Node),
    Echo = {echo, Node},
    Began = erlang:monotonic_time(microsecond),
    [through(Echo, N) || N <- lists:seq(1, 3000)],
    Took = erlang:monotonic_time(microsecond) - Began,
    [through(Echo, binary:copy(<<N>>, N * 100003)) || N <- lists:seq(1, 30)],
    Self = self(),
    [spawn_link(fun() -> [through(Echo, {K, N}) || N <- lists:seq(1, 300)], Self ! done end) || K <- lists:seq(1, 10)],
    [receive done -> ok end || _ <- lists:seq(1, 10)],
    Echo ! {self(), stop},
    receive stopped -> ok end,
    io:format("whole, ~p a second~n", [3000 * 1000000 div Took]),
    halt(0).

through(Echo, Term) ->
    Echo ! {self(), Term},
    receive {echoed, Term} -> ok end.
