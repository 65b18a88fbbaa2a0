# One TFRC stream of ns-2 over a path of 100 ms and 100 Mbit/s that loses packets at random: packets sent per second.
# usage: ns ns2-tfrc.tcl LOSS SEED SECONDS [LEAST_RTO], the first 60 seconds not counted. LEAST_RTO 0.4 makes t_RTO four round-trip
# times, as RFC 5348 has it; without it ns-2 takes a TCP's timer in ticks of 0.1 s, here 0.3 s.
set loss [lindex $argv 0]
set seed [lindex $argv 1]
set seconds [lindex $argv 2]
set ns [new Simulator]
ns-random $seed
set sender [$ns node]
set receiver [$ns node]
$ns duplex-link $sender $receiver 100Mb 50ms DropTail
$ns queue-limit $sender $receiver 10000
set model [new ErrorModel]
$model set rate_ $loss
$model unit pkt
set uniform [new RandomVariable/Uniform]
$uniform set min_ 0
$uniform set max_ 1
$model ranvar $uniform
$model drop-target [new Agent/Null]
[$ns link $sender $receiver] errormodule $model
Agent/TFRC set packetSize_ 1460
if {[llength $argv] > 3} {
    Agent/TFRC set minrto_ [lindex $argv 3]
}
set stream [new Agent/TFRC]
set sink [new Agent/TFRCSink]
$ns attach-agent $sender $stream
$ns attach-agent $receiver $sink
$ns connect $stream $sink
proc remember {} {
    global stream before
    set before [$stream set ndatapack_]
}
proc tell {} {
    global stream before seconds
    puts [expr ([$stream set ndatapack_] - $before) / ($seconds - 60.0)]
    exit 0
}
$ns at 0.0 "$stream start"
$ns at 60.0 remember
$ns at $seconds tell
$ns run
