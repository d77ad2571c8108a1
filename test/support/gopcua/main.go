// An OPC UA server on gopcua: prints its port, then does what standard input asks, and ends with it.
//
//	set NAME VALUE    sets a variable below Objects/Line (Temp or Count, both Double), stamped now
//	count             prints "count SESSIONS SUBSCRIPTIONS"
//
// Arguments: port, then optionally certificate and key (PEM): with them it offers security and takes user names.
package main

import (
	"bufio"
	"context"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"log"
	"os"
	"reflect"
	"strconv"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/server"
	"github.com/gopcua/opcua/server/attrs"
	"github.com/gopcua/opcua/ua"
)

func stamped(value float64) *ua.DataValue {
	return &ua.DataValue{
		Value:           ua.MustVariant(value),
		SourceTimestamp: time.Now(),
		ServerTimestamp: time.Now(),
		EncodingMask:    ua.DataValueValue | ua.DataValueSourceTimestamp | ua.DataValueServerTimestamp,
	}
}

// The library does not export its sessions.
func sessions(s *server.Server) int {
	return reflect.ValueOf(s).Elem().FieldByName("sb").Elem().FieldByName("s").Len()
}

func subscriptions(s *server.Server) int {
	s.SubscriptionService.Mu.Lock()
	defer s.SubscriptionService.Mu.Unlock()
	return len(s.SubscriptionService.Subs)
}

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	log.SetOutput(os.Stderr)
	options := []server.Option{
		server.EndPoint("127.0.0.1", port),
		server.EnableSecurity("None", ua.MessageSecurityModeNone),
		server.EnableAuthMode(ua.UserTokenTypeAnonymous),
	}
	if len(os.Args) > 3 {
		pair, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
		if err != nil {
			log.Fatal(err)
		}
		options = append(options,
			server.PrivateKey(pair.PrivateKey.(*rsa.PrivateKey)),
			server.Certificate(pair.Certificate[0]),
			server.EnableSecurity("Basic256Sha256", ua.MessageSecurityModeSignAndEncrypt),
			server.EnableAuthMode(ua.UserTokenTypeUserName),
		)
	}
	s := server.New(options...)
	objects, err := s.Namespace(0)
	if err != nil {
		log.Fatal(err)
	}
	space := server.NewNodeNameSpace(s, "urn:tagferry:test:line")
	// NewFolderNode of the library panics.
	line := server.NewNode(ua.NewStringNodeID(space.ID(), "Line"), map[ua.AttributeID]*ua.DataValue{
		ua.AttributeIDNodeClass:   server.DataValueFromValue(uint32(ua.NodeClassObject)),
		ua.AttributeIDBrowseName:  server.DataValueFromValue(attrs.BrowseName("Line")),
		ua.AttributeIDDisplayName: server.DataValueFromValue(attrs.DisplayName("Line", "")),
	}, nil, nil)
	space.AddNode(line)
	objects.Objects().AddRef(line, id.HasComponent, true)
	variables := map[string]*server.Node{}
	for _, name := range []string{"Temp", "Count"} {
		variables[name] = space.AddNewVariableStringNode(name, stamped(20))
		line.AddRef(variables[name], id.HasComponent, true)
	}
	if err := s.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(port)
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var name string
		var value float64
		if n, _ := fmt.Sscanf(input.Text(), "set %s %g", &name, &value); n == 2 {
			node := variables[name]
			if err := node.SetAttribute(ua.AttributeIDValue, stamped(value)); err != nil {
				log.Fatal(err)
			}
			space.ChangeNotification(node.ID())
		} else {
			fmt.Println("count", sessions(s), subscriptions(s))
		}
	}
}
