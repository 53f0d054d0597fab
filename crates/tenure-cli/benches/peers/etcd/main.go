// Campaigns with the election of etcd's concurrency package, as in its documentation.
//
// Usage: etcd-elector ENDPOINT TTL_SECONDS. Writes "elected" when it leads. SIGTERM resigns.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func main() {
	ttl, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Args[1]}})
	if err != nil {
		log.Fatal(err)
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	if err != nil {
		log.Fatal(err)
	}
	election := concurrency.NewElection(session, "/compared")
	if err := election.Campaign(ctx, strconv.Itoa(os.Getpid())); err != nil {
		log.Fatal(err)
	}
	fmt.Println("elected")
	<-ctx.Done()
	if err := election.Resign(context.Background()); err != nil {
		log.Fatal(err)
	}
	session.Close()
}
