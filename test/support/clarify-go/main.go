// Clarify's Go client as a peer: connects a signal to an item, disconnects it again, and prints the answers as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/clarify/clarify-go"
	"github.com/clarify/clarify-go/fields"
	_ "github.com/clarify/clarify-go/test"
	clarifyx "github.com/clarify/clarify-go/x"
)

func main() {
	if len(os.Args) != 6 {
		fail("usage: main ADDRESS INTEGRATION PASSWORD INPUT ITEM")
	}
	credentials := clarify.BasicAuthCredentials(os.Args[2], os.Args[3])
	credentials.APIURL = os.Args[1]
	ctx := context.Background()
	admin := clarifyx.Upgrade(credentials.Client(ctx)).Admin()
	query := fields.Query().Where(fields.CompareField("input", fields.In(os.Args[4]))).Limit(1).Total(true)
	connected, err := admin.ConnectSignals(os.Args[2], os.Args[5], query).Do(ctx)
	if err != nil {
		fail("connect: " + err.Error())
	}
	disconnected, err := admin.DisconnectSignals(os.Args[2], query).Do(ctx)
	if err != nil {
		fail("disconnect: " + err.Error())
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"connected": connected, "disconnected": disconnected}); err != nil {
		fail(err.Error())
	}
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}
