# One flow of large packets among 49 of 1500 B in ns-2, the side-by-side of sp-fig1: 100 Mbit/s, 40 ms, a queue of 100 packets.
#
# ns ns2-jumbo.tcl SEED [SIZE [JITTER_S [UNIT [SECONDS]]]]
#
# SIZE (9000): bytes of the odd flow's packets. JITTER_S (0.00012): each packet waits in its source for a random time up to this.
# UNIT (packets): `bytes` counts the queue in bytes, 150 kB. Prints the odd flow's throughput over the mean of the others, from 20 s on.

lassign $argv seed size jitter unit seconds
if {$size eq ""} { set size 9000 }
if {$jitter eq ""} { set jitter 0.00012 }
if {$seconds eq ""} { set seconds 120 }
set warmup 20.0

ns-random $seed
Agent/TCP set window_ 1000000
Agent/TCP set maxcwnd_ 0
Agent/TCP set overhead_ $jitter
if {$unit eq "bytes"} {
    Queue/DropTail set queue_in_bytes_ true
    Queue/DropTail set mean_pktsize_ 1500
}

set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 100Mb 18ms DropTail
$ns queue-limit $left $right 100
$ns queue-limit $right $left 10000
for {set flow 0} {$flow < 50} {incr flow} {
    set from [$ns node]
    set to [$ns node]
    $ns duplex-link $from $left 1000Mb 1ms DropTail
    $ns queue-limit $from $left 10000
    $ns duplex-link $right $to 1000Mb 1ms DropTail
    set bytes($flow) [expr {$flow == 49 ? $size : 1500}]
    set sender($flow) [new Agent/TCP/Sack1]
    $sender($flow) set packetSize_ [expr {$bytes($flow) - 40}]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent $from $sender($flow)
    $ns attach-agent $to $sink
    $ns connect $sender($flow) $sink
    set source [new Application/FTP]
    $source attach-agent $sender($flow)
    $ns at [expr {$flow == 49 ? 1.0 : 0.037 * $flow}] "$source start"
}

proc remember {} {
    global sender before
    for {set flow 0} {$flow < 50} {incr flow} { set before($flow) [$sender($flow) set ack_] }
}

proc finish {} {
    global sender before bytes seconds warmup
    for {set flow 0} {$flow < 50} {incr flow} {
        set got($flow) [expr {([$sender($flow) set ack_] - $before($flow)) * $bytes($flow)}]
    }
    set others 0.0
    for {set flow 0} {$flow < 49} {incr flow} { set others [expr {$others + $got($flow)}] }
    puts [format "gain %.2f, regular %.2f Mbit/s, odd %.2f Mbit/s" [expr {$got(49) / ($others / 49)}] \
        [expr {$others * 8e-6 / 49 / ($seconds - $warmup)}] [expr {$got(49) * 8e-6 / ($seconds - $warmup)}]]
    exit 0
}

$ns at $warmup remember
$ns at $seconds finish
$ns run
