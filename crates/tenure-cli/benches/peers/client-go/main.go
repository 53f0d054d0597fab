// Campaigns with client-go's leader election, with the proportions of its defaults (15 s, 10 s, 2 s).
//
// Usage: client-go-elector SERVER TOKEN CA_FILE TTL_SECONDS. Writes "elected" when it leads. SIGTERM releases.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	seconds, err := strconv.ParseFloat(os.Args[4], 64)
	if err != nil {
		log.Fatal(err)
	}
	ttl := time.Duration(seconds * float64(time.Second))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host:            os.Args[1],
		BearerToken:     os.Args[2],
		TLSClientConfig: rest.TLSClientConfig{CAFile: os.Args[3]},
	})
	if err != nil {
		log.Fatal(err)
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: "compared", Namespace: "default"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: strconv.Itoa(os.Getpid())},
	}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            lock,
		LeaseDuration:   ttl,
		RenewDeadline:   ttl * 10 / 15,
		RetryPeriod:     ttl * 2 / 15,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { fmt.Println("elected") },
			OnStoppedLeading: func() {},
		},
	})
}
