# A dumbbell of long Sack1 flows in ns-2, the side-by-side of bench-xlf100m and bench-many.
#
# ns ns2-dumbbell.tcl FLOWS ACCESS_BPS BOTTLENECK_BPS RTT_S QUEUE_PACKETS SECONDS [SPREAD [START]]
#
# SPREAD (0): the sources' own links are up to this part longer, each another part, so that flows keep no common step.
# START (1): round trips over which the starts are spread.
#
# Packets are 1500 B on the wire, ACKs 40 B, one ACK per packet, initial window 10, window never limiting. DropTail
# drops when length + 1 >= limit, so its limit is one more than the packets that may wait. A source's own queue holds 1.2
# times the bottleneck's.

lassign $argv flows access bottleneck rtt queue seconds spread start
if {$spread eq ""} { set spread 0 }
if {$start eq ""} { set start 1 }

Agent/TCP set packetSize_ 1460
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set window_ 1000000
Agent/TCP set maxcwnd_ 0
Agent/TCP set windowInit_ 10
Agent/TCP set windowInitOption_ 1
Agent/TCP set syn_ true
Agent/TCP set delay_growth_ true
Agent/TCP set minrto_ 0.2
Agent/TCP set overhead_ 0
Agent/TCP set ecn_ 0

# User and system CPU seconds of this process so far.
proc cpu {} {
    set file [open /proc/[pid]/stat]
    set fields [read $file]
    close $file
    return [list [expr {[lindex $fields 13] / 100.0}] [expr {[lindex $fields 14] / 100.0}]]
}

# ns-2 computes its routes before time 0, which with a thousand flows takes longer than the run: printed apart.
proc print_cpu {} {
    global cpu_at_start
    lassign $cpu_at_start user system
    lassign [cpu] user_now system_now
    puts "user_s [format %.2f [expr {$user_now - $user}]]"
    puts "system_s [format %.2f [expr {$system_now - $system}]]"
    puts "setup_s [format %.2f [expr {$user + $system}]]"
}

set ns [new Simulator]
set left [$ns node]
set right [$ns node]
# RTT: two access links and the bottleneck, each way.
set bottleneck_delay [expr {$rtt * 0.4}]
set access_delay [expr {$rtt * 0.05}]
$ns duplex-link $left $right $bottleneck $bottleneck_delay DropTail
$ns queue-limit $left $right [expr {$queue + 1}]
$ns queue-limit $right $left 1000000
set monitor [$ns monitor-queue $left $right ""]

for {set i 0} {$i < $flows} {incr i} {
    set source [$ns node]
    set sink_node [$ns node]
    set part [expr {fmod($i * 0.6180339887498949, 1.0)}]
    $ns duplex-link $source $left $access [expr {$access_delay * (1.0 + $spread * $part)}] DropTail
    $ns duplex-link $right $sink_node $access $access_delay DropTail
    $ns queue-limit $source $left [expr {int($queue * 1.2) + 1}]
    $ns queue-limit $left $source 1000000
    $ns queue-limit $right $sink_node 1000000
    $ns queue-limit $sink_node $right 1000000
    set tcp($i) [new Agent/TCP/Sack1]
    set sink($i) [new Agent/TCPSink/Sack1]
    $ns attach-agent $source $tcp($i)
    $ns attach-agent $sink_node $sink($i)
    $ns connect $tcp($i) $sink($i)
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $tcp($i)
    $ns at [expr {$start * $rtt * $i / $flows}] "$ftp($i) start"
}

proc finish {} {
    global flows tcp sink monitor seconds
    set acked 0
    set sent 0
    set retransmitted 0
    set timeouts 0
    for {set i 0} {$i < $flows} {incr i} {
        set acked [expr {$acked + [$tcp($i) set ack_]}]
        set sent [expr {$sent + [$tcp($i) set ndatapack_]}]
        set retransmitted [expr {$retransmitted + [$tcp($i) set nrexmitpack_]}]
        set timeouts [expr {$timeouts + [$tcp($i) set nrexmit_]}]
    }
    set departed [$monitor set pdepartures_]
    set bytes [$monitor set bdepartures_]
    set drops [$monitor set pdrops_]
    print_cpu
    puts "delivered_packets $departed"
    puts "acked_packets $acked"
    puts "throughput_bps [format %.0f [expr {$bytes * 8.0 / $seconds}]]"
    puts "drops $drops"
    puts "retransmitted $retransmitted"
    puts "timeouts $timeouts"
    exit 0
}
$ns at $seconds "finish"
$ns at 0 "set cpu_at_start \[cpu\]"
$ns run
