# One Sack1 or Newreno flow over one link in ns-2, with the losses given: the recorder of crates/core/tests/ns2/.
#
# ns ns2-single.tcl AGENT PACKETS INITIAL_WINDOW WINDOW QUEUE_PACKETS DELAY_S DROPS
#
# 8 Mbit/s each way, so that every packet lasts whole microseconds: data 1500 B, SYN and ACK 40 B, 8 B more per SACK block.
# DROPS: which packets are lost before the queue, counted from 0 in the order in which they leave the sender (the SYN is 0).
# Prints a line per packet that left: microseconds and packet number (the SYN is 0).

lassign $argv agent packets initial window queue delay drops

Agent/TCP set packetSize_ 1460
Agent/TCP set window_ $window
Agent/TCP set windowInit_ $initial

set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 8e6 $delay DropTail
$ns queue-limit $left $right [expr {$queue + 1}]
$ns queue-limit $right $left 1000000
if {[llength $drops] > 0} {
    set losses [new ErrorModel/List]
    $losses droplist $drops
    $losses drop-target [new Agent/Null]
    $ns lossmodel $losses $left $right
}
set trace [file tempfile name]
$ns trace-queue $left $right $trace

set tcp [new Agent/TCP/$agent]
if {$agent eq "Sack1"} {
    set sink [new Agent/TCPSink/Sack1]
} else {
    set sink [new Agent/TCPSink]
}
$ns attach-agent $left $tcp
$ns attach-agent $right $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0 "$ftp produce $packets"
proc finish {} {
    global ns trace name tcp argv
    $ns flush-trace
    close $trace
    puts "# $argv"
    set file [open $name]
    while {[gets $file line] >= 0} {
        if {[lindex $line 0] eq "+"} {
            puts [format "%.0f %d" [expr {[lindex $line 1] * 1e6}] [lindex $line 10]]
        }
    }
    close $file
    file delete $name
    puts "timeouts [$tcp set nrexmit_]"
    exit 0
}
Agent/TCP instproc done {} { finish }
$ns at 300 finish
$ns run
