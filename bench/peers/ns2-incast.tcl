# bench-incast in ns-2: flows of 100 packets that start at once towards one receiver.
#
# ns ns2-incast.tcl FLOWS PACKETS RATE_BPS LINK_DELAY_S QUEUE_PACKETS [SPREAD]
#
# SPREAD (0): the sources' own links are up to this part longer, each another part, so that flows keep no common step.

lassign $argv flows packets rate delay queue spread
if {$spread eq ""} { set spread 0 }

Agent/TCP set packetSize_ 1460
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set window_ 1000000
Agent/TCP set windowInit_ 10
Agent/TCP set windowInitOption_ 1
Agent/TCP set syn_ true
Agent/TCP set delay_growth_ true
Agent/TCP set minrto_ 0.2
Agent/TCP set overhead_ 0

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
set switch [$ns node]
set receiver [$ns node]
$ns duplex-link $switch $receiver $rate $delay DropTail
$ns queue-limit $switch $receiver [expr {$queue + 1}]
$ns queue-limit $receiver $switch 1000000
set monitor [$ns monitor-queue $switch $receiver ""]
set left $flows
set sum 0.0
set last 0.0

# The sender has seen everything acknowledged; FCT ends at the receiver, half a round trip earlier, as below.
Agent/TCP/Sack1 instproc done {} {
    global ns left sum last
    set now [$ns now]
    set sum [expr {$sum + $now}]
    if {$now > $last} { set last $now }
    incr left -1
    if {$left == 0} { finish }
}

proc finish {} {
    global ns flows tcp monitor sum last left
    set timeouts 0
    for {set i 0} {$i < $flows} {incr i} {
        set timeouts [expr {$timeouts + [$tcp($i) set nrexmit_]}]
    }
    print_cpu
    puts "delivered_packets [$monitor set pdepartures_]"
    puts "finished [expr {$flows - $left}]"
    puts "mean_fct_s [format %.6f [expr {$sum / ($flows - $left)}]]"
    puts "last_fct_s [format %.6f $last]"
    puts "drops [$monitor set pdrops_]"
    puts "timeouts $timeouts"
    exit 0
}

for {set i 0} {$i < $flows} {incr i} {
    set source [$ns node]
    set part [expr {fmod($i * 0.6180339887498949, 1.0)}]
    $ns duplex-link $source $switch $rate [expr {$delay * (1.0 + $spread * $part)}] DropTail
    $ns queue-limit $source $switch 1000000
    $ns queue-limit $switch $source 1000000
    set tcp($i) [new Agent/TCP/Sack1]
    set sink($i) [new Agent/TCPSink/Sack1]
    $ns attach-agent $source $tcp($i)
    $ns attach-agent $receiver $sink($i)
    $ns connect $tcp($i) $sink($i)
    set ftp($i) [new Application/FTP]
    $ftp($i) attach-agent $tcp($i)
    $ns at 0 "$ftp($i) produce $packets"
}
$ns at 100 "finish"
$ns at 0 "set cpu_at_start \[cpu\]"
$ns run
